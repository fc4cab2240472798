"""``gcdbench``: finds the verb's file and loads only that one."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import click

from gcdbench import __version__
from gcdbench.cli.echo import say
from gcdbench.core.errors import GCDBenchError
from gcdbench.plugins.manager import PLUGIN_FILES_VARIABLE

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run", "Train a method on a dataset, predict, score."),
    "sweep": ("sweep", "Run whatever a suite of runs still lacks."),
    "table": ("table", "Print results as a table, with n, sd and protocol."),
    "list": ("list", "List methods, datasets, metrics, backbones, executors or plugins."),
    "data": ("data", "Find, fetch, verify, prepare, audit and split datasets."),
    "show": ("show", "Show everything about one run."),
    "status": ("status", "List runs and their state."),
    "rescore": ("rescore", "Compute all scores again from stored predictions."),
    "verify": ("verify", "Compare every stored file with its hash."),
    "discover": ("discover", "Sort unlabelled images, with the help of labelled ones of known classes."),
    "name": ("name", "Store names for the clusters of a run."),
    "predict": ("predict", "Predict new images with a run's model."),
    "export-model": ("export_model", "Write a run's model as an ONNX file."),
    "explain": ("explain", "Draw attention maps and score them against masks."),
    "cost": ("cost", "Measure a model's parameters, FLOPs, latency and memory."),
    "estimate-k": ("estimate_k", "Estimate the number of classes."),
    "tune-lr": ("tune_lr", "Choose a learning rate on old-class validation images only."),
    "figure": ("figure", "Draw a figure from stored runs."),
    "report": ("report", "Write one self-contained HTML report."),
    "export": ("export", "Pack runs into an archive."),
    "import": ("import_", "Check an archive and merge its runs."),
    "leaderboard": ("leaderboard", "Make static pages from archives of runs, and score every run again."),
    "new": ("new", "Write a plugin package to start from."),
    "audit-numbers": ("audit_numbers", "Check a published table: All must be between Old and New."),
    "doctor": ("doctor", "Check the installation, plugins, data and weights."),
}


class LazyGroup(click.Group):
    """A group that knows its verbs by name and imports a verb's module when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Verbs in the order above, as far as they are installed."""
        folder = Path(__file__).parent
        return [name for name, (module, _) in COMMANDS.items() if (folder / f"{module}.py").exists()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb called ``cmd_name``."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"gcdbench.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Short helps from the table above: no verb is imported to print them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As usual, but a misspelt verb is answered with the nearest one."""
        import difflib

        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in self.list_commands(ctx):
            near = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
            hint = f"Did you mean '{near[0]}'?" if near else "'gcdbench --help' lists the commands."
            raise click.UsageError(f"There is no command '{name}'. {hint}", ctx)
        return super().resolve_command(ctx, args)


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="gcdbench")
@click.option(
    "--plugin-file",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Load a local plugin file (also: GCDBENCH_PLUGINS). May be repeated.",
)
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def command(plugin_file: tuple[Path, ...]) -> None:
    """A benchmark toolkit for generalized category discovery."""
    if plugin_file:
        given = os.environ.get(PLUGIN_FILES_VARIABLE, "")
        # Worker processes inherit the environment, so they load the same files, wherever they are started.
        files = [str(path.absolute()) for path in plugin_file]
        os.environ[PLUGIN_FILES_VARIABLE] = os.pathsep.join([*files, *filter(None, [given])])


def main() -> None:
    """Entry point: errors meant for the user become one sentence, a hint and an exit code."""
    try:
        command(standalone_mode=False, prog_name="gcdbench")
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.exceptions.Abort:
        say("Interrupted.", err=True)
        sys.exit(130)
    except KeyboardInterrupt:
        say("Interrupted.", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader (head, less) has gone, which is not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except GCDBenchError as error:
        if "--debug" in sys.argv:
            raise
        say(f"Error: {error.message}", err=True)
        if error.hint:
            say(f"Hint: {error.hint}", err=True)
        sys.exit(error.exit_code)
    except Exception as error:  # a plugin's method may raise anything: still one sentence, and the way to more
        if "--debug" in sys.argv:
            raise
        say(f"Error: {_explained(error)}", err=True)
        say("Hint: 'gcdbench --debug …' shows where; a failed run keeps its traceback ('gcdbench status').", err=True)
        sys.exit(1)


def _explained(error: Exception) -> str:
    """The error with its file and line, where it came out of a plugin."""
    from gcdbench.plugins.manager import get_manager

    try:
        return get_manager().explain(error)
    except GCDBenchError:  # of a plugin file: that was said when it was loaded, or another error came first
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
