"""The main table from nothing: no data, no cache, no runs; two commands, as a new user types them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from gcdbench.cli.main import command
from gcdbench.plugins.manager import get_manager
from gcdbench.reporting.suites.read import load_suite

pytest.importorskip("gcdbench_medxplore")


@pytest.fixture
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with an empty home, an empty cache and no data."""
    monkeypatch.delenv("GCDBENCH_DATA", raising=False)
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "GCDBENCH_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


# About 30 s of one core, and still not marked slow: that the whole chain runs must be seen with every change.
# Runs are done in this process, so that torch is imported once and not ten times.
def test_sweep_and_table_of_the_main_suite(nothing: Path) -> None:
    suite = "medxplore/main"
    swept = CliRunner().invoke(command, ["sweep", suite, "--preset", "smoke", "--executor", "inline", "--threads", "1"])
    assert swept.exit_code == 0, swept.output
    rows = {row.key for row in load_suite(suite, get_manager()).rows}
    assert f"{len(rows)} of {len(rows)} runs are done" in swept.stdout
    assert "NCT-CRC-HE-100K is replaced by phantom" in swept.stdout
    share = re.search(rf"^{len(rows)} runs in .*, (\d+) % of it training steps\.$", swept.stdout, re.MULTILINE)
    assert share is not None
    assert 0 < int(share[1]) < 100

    shown = CliRunner().invoke(command, ["table", suite])
    assert shown.exit_code == 0, shown.output
    assert "phantom in place of Kvasir, PBC, OrganAMNIST, OrganCMNIST, NCT-CRC-HE-100K" in shown.stdout
    assert "nothing about those datasets" in shown.stdout
    assert "72.8" not in shown.stdout  # no published number beside a stand-in

    entries = json.loads(CliRunner().invoke(command, ["table", suite, "--json"]).stdout)["entries"]
    accuracy = {e["row"]: e for e in entries if e["score"] == "all"}
    assert set(accuracy) == rows
    for row, entry in accuracy.items():
        assert entry["n"] == 1, row
        assert 0 < entry["mean"] <= 100
        assert not entry["bold"]  # one seed decides nothing
        assert entry["reported"] is None
    assert (nothing / "runs" / "phantom").is_dir()

    again = CliRunner().invoke(command, ["sweep", suite, "--preset", "smoke", "--executor", "inline"])
    assert f"{len(rows)} done, 0 missing" in again.stdout
