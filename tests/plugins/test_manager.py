"""Broken plugins must not break anything else."""

from __future__ import annotations

import sys
import textwrap
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from gcdbench.cli.options import warn_of_plugins
from gcdbench.core.errors import ConfigError, PluginError, UnknownName
from gcdbench.plugins import MethodSpec
from gcdbench.plugins.manager import HOOK_OF_KIND, PluginManager

GOOD = """
from gcdbench.plugins import MethodSpec, hookimpl

@hookimpl
def gcdbench_methods():
    return [MethodSpec(name="{name}", factory="nowhere:Nothing", api=2)]
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
        monkeypatch.delitem(sys.modules, name, raising=False)  # another test's module of this name
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


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1\n\nimport a_package_that_is_not_installed", "plug_place.py, line 3"),
        ("x = 1\ndef broken(:\n", "plug_place.py, line 2"),
        (RAISING, "plug_place.py, line 7"),
        ("import json\njson.loads('{')\n", "plug_place.py, line 2"),  # where the plugin called, not where json gave up
    ],
)
def test_an_error_in_an_installed_plugin_names_its_file_and_line(point, source: str, said: str) -> None:
    [problem] = [r for r in PluginManager(points=[point("plug_place", source)]).records() if not r.ok]
    assert problem.error.endswith(f"({said})")


def test_an_error_deep_in_a_package_names_the_file_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    package = tmp_path / "plug_deep" / "inner"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    (package / "helper.py").write_text("def divide():\n    return 1 / 0\n")
    (package / "plugin.py").write_text("from plug_deep.inner.helper import divide\ndivide()\n")
    point = EntryPoint(name="deep", value="plug_deep.inner.plugin", group="gcdbench")
    [problem] = [r for r in PluginManager(points=[point]).records() if not r.ok]
    assert problem.error == "ZeroDivisionError: division by zero (plug_deep/inner/helper.py, line 2)"


def test_asking_for_what_a_broken_plugin_offered_shows_its_error(point) -> None:
    manager = PluginManager(points=[point("plug_magic", IMPORT_ERROR)])
    with pytest.raises(UnknownName) as caught:
        manager.get("methods", "magic")
    assert "a_package_that_is_not_installed" in str(caught.value.hint)


def test_two_third_parties_with_one_name_both_lose_it(point) -> None:
    manager = PluginManager(
        points=[point("plug_one", GOOD.format(name="twin")), point("plug_two", GOOD.format(name="twin"))]
    )
    assert "twin" not in manager.names("methods")
    with pytest.raises(PluginError, match="two plugins offer a method named 'twin'"):
        manager.get("methods", "twin")


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (0, "was made for plugin interface 0, this gcdbench has interface 2: install a newer version of the plugin"),
        (3, "was made for plugin interface 3, this gcdbench has interface 2: update gcdbench"),
        ("x", "says api='x', which is not a plugin interface: write api=2"),
        (True, "says api=True, which is not a plugin interface"),
    ],
)
def test_spec_for_another_interface_is_refused_with_a_sentence(point, version: object, said: str) -> None:
    source = GOOD.format(name="old-one").replace("api=2", f"api={version!r}")
    manager = PluginManager(points=[point("plug_old", source)])
    assert "old-one" not in manager.names("methods")
    [problem] = [r for r in manager.records() if not r.ok]
    assert f"'old-one' {said}" in problem.error


@pytest.mark.parametrize("said", ["", ", api=None", ", api=1"])
def test_a_spec_of_the_interface_before_works_with_a_note_that_says_what_to_write(
    point, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = GOOD.format(name="old-one").replace(", api=2", said)
    with pytest.warns(DeprecationWarning, match="'old-one' does not say api=2") as caught:
        manager = PluginManager(points=[point("plug_old", source)])
    assert len(caught) == 1
    assert "old-one" in manager.names("methods")
    [record] = [record for record in manager.records() if record.notes]
    assert record.ok
    assert "write api=2 into each spec" in record.notes[0]
    warn_of_plugins(manager)  # a run is not the place for it
    assert capsys.readouterr().err == ""


def test_what_comes_with_gcdbench_and_what_says_its_interface_is_not_noted(point, recwarn) -> None:
    manager = PluginManager(points=[point("plug_good", GOOD.format(name="my-method"))])
    assert not [record for record in manager.records() if record.notes]
    assert not recwarn.list


def test_list_and_doctor_show_the_note(cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gcdbench.plugins.manager import get_manager

    (tmp_path / "dated.py").write_text(GOOD.format(name="old-one").replace(", api=2", ""))
    monkeypatch.setenv("GCDBENCH_PLUGINS", str(tmp_path / "dated.py"))
    get_manager.cache_clear()
    with pytest.warns(DeprecationWarning, match="'old-one'"):
        listed = cli("list", "plugins").output
    assert listed.count("write api=2 into each spec") == 1
    assert cli("doctor").output.count("write api=2 into each spec") == 1
    get_manager.cache_clear()


def test_a_wrong_return_type_is_reported(point) -> None:
    source = GOOD.format(name="x").replace('[MethodSpec(name="x", factory="nowhere:Nothing", api=2)]', '["x"]')
    manager = PluginManager(points=[point("plug_text", source)])
    [problem] = [r for r in manager.records() if not r.ok]
    assert "expected MethodSpec" in problem.error


def test_an_error_in_a_plugin_file_is_fatal_and_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("x = 1\n\nraise RuntimeError('no luck')\n")
    with pytest.raises(PluginError, match=r"no luck \(mine.py, line 3\)"):
        PluginManager(points=[], files=[path])
    path.write_text("\ndef broken(:\n")
    with pytest.raises(PluginError, match=r"SyntaxError: .*\(mine.py, line 2\)"):
        PluginManager(points=[], files=[path])
    with pytest.raises(PluginError, match="does not exist"):
        PluginManager(points=[], files=[tmp_path / "absent.py"])


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (RAISING, r"call of gcdbench_methods.*the shelf is empty \(mine.py, line 7\)"),
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
    with pytest.raises(PluginError, match=r"no luck \(mine.py, line 3\)"):
        PluginManager(points=[], files=[Path("mine.py")])


def test_a_plugin_file_named_twice_is_loaded_once_and_namesakes_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(GOOD.format(name=f"method-{folder}"))
    one, other = tmp_path / "a" / "mine.py", tmp_path / "b" / "mine.py"
    assert "method-a" in PluginManager(points=[], files=[one, one]).names("methods")
    with pytest.raises(PluginError, match="have the same name"):
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
    assert failure.endswith("(plug_observer.py, line 6)")


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


FAMILY = """
from gcdbench.plugins import BackboneSpec, hookimpl


def load(weights, *, argument):
    return argument, weights


def identify(weights, *, argument):
    return f"{argument}-{weights}"


@hookimpl
def gcdbench_backbones():
    paths = {"factory": f"{__name__}:load", "identify": f"{__name__}:identify"}
    return [BackboneSpec(name="nets", api=2, takes_argument=True, **paths)]
"""


def test_one_spec_stands_for_a_family_of_names(point) -> None:
    manager = PluginManager(points=[point("plug_family", FAMILY)])
    spec = manager.get("backbones", "nets:small:2")
    assert spec.load()("file") == ("small:2", "file")
    assert spec.weights_sha256("file", load=False) == "small:2-file"
    assert manager.get("backbones", "nets:large").argument == "large"
    for name, problem in (("nets", "needs an argument"), ("nets:", "needs an argument"), ("resnet18:x", "takes no")):
        with pytest.raises(ConfigError, match=problem):
            manager.get("backbones", name)
    with pytest.raises(UnknownName):
        manager.get("backbones", "net:large")
    assert "nets" in manager.names("backbones")
