"""The command line as a user meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = ("run", "--method", "nearest-mean", "--dataset", "stripes", "--set", "image_size=32", "--workers", "1", "-q")


def imported_by(*arguments: str) -> set[str]:
    """Modules that a command imports, in a process of its own."""
    script = (
        "import sys; sys.argv = ['gcdbench', *sys.argv[1:]]\n"
        "from gcdbench.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('\\n@' + ' '.join(sys.modules))"
    )
    output = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
    return set(output.stdout.rpartition("@")[2].split())


@pytest.mark.parametrize("arguments", [("--help",), ("list", "methods"), ("list", "datasets"), ("status",)])
def test_light_commands_import_no_torch(arguments: tuple[str, ...]) -> None:
    heavy = {"torch", "torchvision", "pandas", "scipy", "sklearn", "matplotlib"} & imported_by(*arguments)
    assert not heavy


def test_help_lists_every_command(cli) -> None:
    from gcdbench.cli.main import COMMANDS

    output = cli("--help").stdout
    for name in COMMANDS:
        assert name in output
        assert cli(name, "--help").exit_code == 0, name


@pytest.mark.usefixtures("example_plugin")
def test_run_show_status_rescore(cli) -> None:
    first = cli(*RUN)
    assert first.exit_code == 0, first.output
    assert "All" in first.stdout
    assert "false-old" in first.stdout
    assert "Reused" in cli(*RUN).stdout
    [run] = json.loads(cli("status", "--json").stdout)
    assert run["status"] == "done"
    shown = json.loads(cli("show", run["run_id"][:6], "--json").stdout)
    assert shown["record"]["method"] == "nearest-mean"
    assert f"stripes/nearest-mean seed 0  {run['preset']}, {run['protocol']}, " in cli("status").stdout
    assert shown["environment"]["packages"]["numpy"]
    assert shown["environment"]["kernels"]
    assert "0 score(s) changed" in cli("rescore").stdout


@pytest.mark.usefixtures("example_plugin")
def test_rescore_names_a_metric_that_fails(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    import gcdbench_example.metric

    assert cli(*RUN).exit_code == 0
    monkeypatch.setattr(gcdbench_example.metric, "purity", lambda *a: 1 / 0)
    again = cli("rescore")
    assert again.exit_code == 1
    assert "The metric 'purity' failed: ZeroDivisionError" in again.stderr


@pytest.mark.usefixtures("example_plugin")
@pytest.mark.parametrize(("setting", "code"), [("epochs", 0), ("epocs", 1)])
def test_a_sweep_of_a_suite_with_a_misspelt_setting_fails(cli, tmp_path: Path, setting: str, code: int) -> None:
    rows = "".join(
        f'[[rows]]\nkey = "{key}"\nmethod = "nearest-mean"\n{more}\n'
        for key, more in (("right", ""), ("other", f"set = {{ {setting} = 3, quantile = 0.4 }}"))
    )
    suite = tmp_path / "mine.toml"
    suite.write_text('title = "Mine"\n[presets.smoke]\nseeds = [0]\n[[columns]]\ndataset = "stripes"\n' + rows)
    swept = cli("sweep", suite, "--preset", "smoke", "--executor", "inline")
    assert swept.exit_code == code, swept.output
    assert ("did you mean 'epochs'" in swept.output) == bool(code)


@pytest.mark.usefixtures("example_plugin")
def test_a_dataset_that_cannot_be_opened_spoils_no_list(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    import gcdbench_example.dataset

    monkeypatch.setattr(gcdbench_example.dataset, "make_stripes", lambda: None)
    listed = cli("data", "list")
    assert listed.exit_code == 0, listed.output
    assert "phantom" in listed.stdout
    refused = cli(*RUN)
    assert refused.exit_code != 0
    assert "The dataset 'stripes' could not be opened: TypeError" in refused.stderr
    monkeypatch.setattr(gcdbench_example.dataset, "make_stripes", lambda request: 3)
    assert "must return a DatasetSource" in cli(*RUN).stderr


@pytest.mark.usefixtures("example_plugin")
def test_settings_that_a_method_never_looks_at_are_named(cli) -> None:
    plain = cli(*RUN, "--set", "quantile=0.4", "--json")
    with_idle = cli(*RUN, "--set", "quantile=0.4", "--json", "--set", "epochs=5", "--set", "views=bank:4")
    assert plain.stderr == ""
    assert [line.split("'")[1] for line in with_idle.stderr.splitlines()] == ["epochs", "views"]
    assert json.loads(with_idle.stdout) == json.loads(plain.stdout) | {"reused": True}


@pytest.mark.usefixtures("example_plugin")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "--method", "nearest-men", "--dataset", "stripes"), "did you mean 'nearest-mean'"),
        (("run", "--method", "nearest-mean", "--dataset", "strips"), "did you mean 'stripes'"),
        (("run", "--method", "simgcd", "--dataset", "stripes", "--backbone", "resnet81"), "no backbone named"),
        ((*RUN, "--set", "quantil=0.3"), "did you mean 'quantile'"),
        ((*RUN, "--set", "quantile=much"), "'quantile' must be of type float"),
        ((*RUN, "--set", "image_size"), "key=value"),
        ((*RUN, "--set", "views=bank:x"), "views must be"),
        ((*RUN, "--set", "views=bank:²"), "views must be"),
        ((*RUN, "--set", "views=bank:99999999999999999999"), "with V from 2 to 1024"),
        (("data", "cache", "trim", "--to", 400 * "9"), "is not a size"),
        (("data", "cache", "clear", "--key", "typo"), "no cache entry named 'typo'; known: "),
        ((*RUN, "--variant", "big"), "no variant of 'nearest-mean'"),
        ((*RUN, "--preset", "laptopp"), "did you mean 'laptop'"),
        (
            (*RUN, "--protocol", "paper-stated"),
            "no protocol 'paper-stated'; it has by-count, half,",
        ),
        ((*RUN, "--config", "absent.toml"), "cannot be read"),
        (("run", "--dataset", "stripes"), "No method was given"),
        ((*RUN, "--device", "gpu"), "no device 'gpu' on this machine; there is cpu"),
        ((*RUN, "--set", "lr=nan"), "'lr' must be a finite number"),
        (("show", "nothing"), "no run 'nothing'"),
    ],
)
def test_bad_input_is_one_sentence_and_a_failing_exit_code(cli, arguments: tuple[str, ...], said: str) -> None:
    result = cli(*arguments)
    assert result.exit_code != 0
    assert said in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.usefixtures("example_plugin")
@pytest.mark.parametrize("below", ["", "/sub/folder"])
@pytest.mark.parametrize(
    "arguments", [RUN, ("data", "cache", "list"), ("data", "cache", "clear"), ("data", "cache", "trim", "--to", "1GB")]
)
def test_a_cache_that_is_a_file_is_one_sentence(
    cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], below: str
) -> None:
    file = tmp_path / "a-file"
    file.write_text("")
    monkeypatch.setenv("GCDBENCH_CACHE", f"{file}{below}")
    result = cli(*arguments)
    assert result.exit_code == 2
    said = f"GCDBENCH_CACHE is '{file}{below}', but '{file}' is a file"
    assert said in result.stderr
    assert said in cli("doctor").stdout


@pytest.mark.usefixtures("example_plugin")
def test_an_unreadable_config_and_unknown_keys_are_refused(cli, tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text("method = ")
    assert "not valid TOML" in cli("run", "--config", path).stderr
    path.write_text("metod = 'x'")
    assert "unknown key 'metod'" in cli("run", "--config", path).stderr
    path.write_text('method = "nearest-mean"\ndataset = "stripes"\nseed = 4\n[set]\nimage_size = 32\nquantile = 0.25\n')
    result = cli("run", "--config", path, "--set", "quantile=0.75", "--json")
    assert result.exit_code == 0
    record = json.loads(Path(json.loads(result.stdout)["path"], "run.json").read_text())
    assert record["seed"] == 4
    assert record["identity"]["config"]["quantile"] == 0.75


@pytest.mark.usefixtures("example_plugin")
def test_a_run_directory_that_cannot_be_written(cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = cli(*RUN, "--runs", tmp_path / "file" / "runs")
    assert result.exit_code != 0
    assert "cannot be written" in result.stderr


@pytest.mark.usefixtures("example_plugin")
def test_truncated_predictions_are_found_by_rescore(cli) -> None:
    path = Path(json.loads(cli(*RUN, "--json").stdout)["path"])
    file = path / "predictions" / "transductive.npz"
    file.write_bytes(file.read_bytes()[:-10])
    result = cli("rescore")
    assert result.exit_code != 0
    assert "truncated or was changed" in result.stderr


def test_a_misspelt_command_gets_the_nearest(cli) -> None:
    result = cli("rnu")
    assert result.exit_code != 0
    assert "Did you mean 'run'" in result.stderr


def test_doctor_reports_a_broken_plugin(tmp_path: Path) -> None:
    (tmp_path / "bad_plugin.py").write_text("import nowhere_to_be_found")
    dist = tmp_path / "bad_plugin-1.0.dist-info"
    dist.mkdir()
    (dist / "METADATA").write_text("Metadata-Version: 2.1\nName: bad-plugin\nVersion: 1.0\n")
    (dist / "entry_points.txt").write_text("[gcdbench]\nbad = bad_plugin\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    for arguments, code in ((["doctor"], 1), (["list", "plugins"], 0)):
        done = subprocess.run(
            [sys.executable, "-m", "gcdbench.cli.main", *arguments], env=environment, capture_output=True, text=True
        )
        assert done.returncode == code, done.stderr
        assert "bad-plugin" in done.stdout
        assert "nowhere_to_be_found" in done.stdout
