"""Broken plugins must not break anything else."""

from __future__ import annotations

import textwrap
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from gcdbench.cli.options import warn_of_plugins
from gcdbench.core.errors import PluginError, UnknownName
from gcdbench.plugins import API_VERSION, MethodSpec
from gcdbench.plugins.manager import HOOK_OF_KIND, PluginManager

GOOD = """
from gcdbench.plugins import MethodSpec, hookimpl

@hookimpl
def gcdbench_methods():
    return [MethodSpec(name="{name}", factory="nowhere:Nothing")]
"""
IMPORT_ERROR = "import a_package_that_is_not_installed"
UNKNOWN_ARGUMENT = """
from gcdbench.plugins import hookimpl

@hookimpl
def gcdbench_methods(colour):
    return []
"""
MISSPELT = """
from gcdbench.plugins import hookimpl

@hookimpl
def gcdbench_metods():
    return []
"""
RAISING = """
from gcdbench.plugins import hookimpl

@hookimpl
def gcdbench_methods():
    yield from ()
    raise ValueError("the shelf is empty")
"""


@pytest.fixture
def point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write a module and return an entry point to it."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(name: str, source: str) -> EntryPoint:
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(source))
        return EntryPoint(name=name, value=name, group="gcdbench")

    return make


def problems(manager: PluginManager) -> dict[str, str]:
    return {record.name.rpartition(":")[2]: record.stage for record in manager.records() if not record.ok}


def test_five_broken_plugins_leave_the_rest_working(point) -> None:
    manager = PluginManager(
        points=[
            point("plug_import", IMPORT_ERROR),
            point("plug_argument", UNKNOWN_ARGUMENT),
            point("plug_misspelt", MISSPELT),
            point("plug_raising", RAISING),
            point("plug_duplicate", GOOD.format(name="simgcd")),
            point("plug_good", GOOD.format(name="my-method")),
        ]
    )
    assert {"simgcd", "my-method"} <= set(manager.names("methods"))
    assert manager.get("methods", "simgcd").factory.startswith("gcdbench.")
    assert problems(manager) == {
        "plug_import": "import",
        "plug_argument": "registration",
        "plug_misspelt": "validation",
        "plug_raising": "call of gcdbench_methods",
        "plug_duplicate": "naming",
    }
    # A plugin that pluggy kept after refusing it would be called, and fail, at every later hook call.
    assert manager.notify("gcdbench_run_started", run={}) == []


def test_a_hook_without_its_mark_and_an_entry_point_at_a_function_are_told(point) -> None:
    unmarked = PluginManager(points=[point("plug_unmarked", GOOD.format(name="mine").replace("@hookimpl", ""))])
    [problem] = [r for r in unmarked.records() if not r.ok]
    assert "gcdbench_methods is not marked as a hook: write @hookimpl above it" in problem.error
    point("plug_function", GOOD.format(name="mine"))
    at_function = EntryPoint(name="x", value="plug_function:gcdbench_methods", group="gcdbench")
    [problem] = [r for r in PluginManager(points=[at_function]).records() if not r.ok]
    assert "name its module, 'plug_function'" in problem.error


def test_a_run_says_which_plugins_do_not_work(point, capsys: pytest.CaptureFixture[str]) -> None:
    warn_of_plugins(PluginManager(points=[point("plug_good", GOOD.format(name="my-method"))]))
    assert capsys.readouterr().err == ""
    warn_of_plugins(PluginManager(points=[point("plug_duplicate", GOOD.format(name="simgcd"))]))
    assert "two plugins offer a method named 'simgcd'" in capsys.readouterr().err


def test_asking_for_what_a_broken_plugin_offered_shows_its_error(point) -> None:
    manager = PluginManager(points=[point("plug_magic", IMPORT_ERROR)])
    with pytest.raises(UnknownName) as caught:
        manager.get("methods", "magic")
    assert "a_package_that_is_not_installed" in str(caught.value.hint)


def test_two_strangers_with_one_name_lose_it_both(point) -> None:
    manager = PluginManager(
        points=[point("plug_one", GOOD.format(name="twin")), point("plug_two", GOOD.format(name="twin"))]
    )
    assert "twin" not in manager.names("methods")
    with pytest.raises(PluginError, match="two plugins offer a method named 'twin'"):
        manager.get("methods", "twin")


def test_spec_for_another_interface_is_refused_with_a_sentence(point) -> None:
    source = GOOD.format(name="old-one").replace('Nothing")', f'Nothing", api={API_VERSION + 1})')
    manager = PluginManager(points=[point("plug_old", source)])
    assert "old-one" not in manager.names("methods")
    [problem] = [r for r in manager.records() if not r.ok]
    assert f"made for plugin interface {API_VERSION + 1}" in problem.error


def test_a_wrong_return_type_is_reported(point) -> None:
    source = GOOD.format(name="x").replace('[MethodSpec(name="x", factory="nowhere:Nothing")]', '["x"]')
    manager = PluginManager(points=[point("plug_text", source)])
    [problem] = [r for r in manager.records() if not r.ok]
    assert "expected MethodSpec" in problem.error


def test_an_error_in_a_plugin_file_is_fatal_and_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("x = 1\n\nraise RuntimeError('no luck')\n")
    with pytest.raises(PluginError, match=r"line 3.*no luck"):
        PluginManager(points=[], files=[path])
    path.write_text("def broken(:\n")
    with pytest.raises(PluginError, match="line 1"):
        PluginManager(points=[], files=[path])
    with pytest.raises(PluginError, match="does not exist"):
        PluginManager(points=[], files=[tmp_path / "absent.py"])


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (RAISING, r"call of gcdbench_methods, line 7.*the shelf is empty"),
        (UNKNOWN_ARGUMENT, "registration"),
        (MISSPELT, "no such hook: gcdbench_metods"),
        (GOOD.format(name="simgcd"), "two plugins offer a method named 'simgcd'"),
        (GOOD.format(name="../simgcd"), "cannot be a name"),
        ("raise SystemExit(0)", "line 1"),
    ],
)
def test_whatever_is_wrong_with_a_plugin_file_is_fatal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, said: str
) -> None:
    (tmp_path / "mine.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PluginError, match=said):
        PluginManager(points=[], files=[Path("mine.py")])


def test_a_relative_plugin_file_has_lines_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("x = 1\n\nraise RuntimeError('no luck')\n")
    with pytest.raises(PluginError, match=r"line 3.*no luck"):
        PluginManager(points=[], files=[Path("mine.py")])


def test_a_plugin_file_named_twice_is_loaded_once_and_namesakes_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(GOOD.format(name=f"method-{folder}"))
    one, other = tmp_path / "a" / "mine.py", tmp_path / "b" / "mine.py"
    assert "method-a" in PluginManager(points=[], files=[one, one]).names("methods")
    with pytest.raises(PluginError, match="have one name"):
        PluginManager(points=[], files=[one, other])


def test_an_installed_plugin_that_exits_is_one_more_broken_plugin(point) -> None:
    manager = PluginManager(points=[point("plug_exit", "raise SystemExit(3)")])
    assert problems(manager) == {"plug_exit": "import"}


def test_a_raising_observer_is_reported_and_harmless(point) -> None:
    source = """
    from gcdbench.plugins import hookimpl

    @hookimpl
    def gcdbench_run_started(run):
        raise KeyError(run["run_id"])
    """
    manager = PluginManager(points=[point("plug_observer", source)])
    [failure] = manager.notify("gcdbench_run_started", run={"run_id": "abc"})
    assert "abc" in failure


def test_unknown_names_get_the_nearest_match() -> None:
    manager = PluginManager(points=[])
    with pytest.raises(UnknownName, match="did you mean 'simgcd'"):
        manager.get("methods", "simgdc")


def test_every_spec_can_be_loaded_and_has_a_summary() -> None:
    manager = PluginManager(points=[])
    for kind in HOOK_OF_KIND:
        for spec in manager.specs(kind):
            assert spec.summary, f"{kind} {spec.name} has no summary"
            if kind not in ("presets", "suites"):  # these are data
                assert callable(spec.load()), f"{kind} {spec.name} does not load"
            if isinstance(spec, MethodSpec) and spec.config:
                from gcdbench.plugins.specs import load_attribute

                load_attribute(spec.config)()
