"""The arithmetic of published tables: shares by brute force, and what is known to be wrong in one paper."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from gcdbench.cli.audit_numbers import command
from gcdbench.core.errors import DataError, GCDBenchError
from gcdbench.reporting.published.protocols import share_of_protocol
from gcdbench.reporting.published.reported import Rounded, parse_printed, read_reported
from gcdbench.reporting.published.rows import audit
from gcdbench.reporting.published.shares import Share, allowed_share, consensus, miss
from gcdbench.splits.protocol import Protocol

REPORTED = Path(__file__).parents[2] / "plugins" / "medxplore" / "gcdbench_medxplore" / "study" / "reported"
PAPER, PAPER_ERRORS = REPORTED / "medxplore.csv", REPORTED / "medxplore_errors.csv"


def rounded(value, half=0.05):
    return Rounded(value=value, half=half)


@given(st.floats(0, 100), st.floats(0, 100), st.floats(0, 1))
@settings(max_examples=200, deadline=None)
def test_a_true_row_always_allows_its_own_share(old, new, w):
    all_ = w * old + (1 - w) * new
    printed = [rounded(round(value, 1)) for value in (all_, old, new)]
    share = allowed_share(*printed)
    assert share is not None
    assert w in Share(low=share.low - 1e-6, high=share.high + 1e-6)
    assert miss(*printed, w) < 1e-6


@given(st.floats(0, 100), st.floats(0, 100), st.floats(0, 100))
@settings(max_examples=200, deadline=None)
def test_the_allowed_share_is_that_of_a_scan(a, o, n):
    a, o, n = (round(value, 1) for value in (a, o, n))
    grid = np.linspace(0, 1, 2001)
    low = grid * (o - 0.05) + (1 - grid) * (n - 0.05)
    high = grid * (o + 0.05) + (1 - grid) * (n + 0.05)
    fits = grid[(low <= a + 0.05 + 1e-9) & (high >= a - 0.05 - 1e-9)]
    share = allowed_share(rounded(a), rounded(o), rounded(n))
    if share is None:
        assert fits.size == 0
    elif fits.size:
        assert share.low == pytest.approx(fits.min(), abs=6e-4)
        assert share.high == pytest.approx(fits.max(), abs=6e-4)
    else:
        assert share.high - share.low < 6e-4


def test_consensus_is_where_most_intervals_meet():
    shares = [Share(low=lo, high=hi) for lo, hi in [(0.1, 0.3), (0.25, 0.5), (0.28, 0.6), (0.7, 0.9)]]
    best, votes = consensus(shares)
    assert (best.low, best.high, votes) == (0.28, 0.3, 3)
    assert consensus([]) == (None, 0)


@pytest.mark.parametrize(
    ("text", "value", "half"),
    [
        ("72.8", 72.8, 0.05),
        ("72.80", 72.8, 0.005),
        ("73", 73.0, 0.5),
        ("72.8 ± 0.4", 72.8, 0.05),
        ("**72.8**", 72.8, 0.05),
        ("\\textbf{72.8}", 72.8, 0.05),
        ("$72.8 \\pm 0.3$", 72.8, 0.05),
        (" 72.8% ", 72.8, 0.05),
        ("72.8 (0.4)", 72.8, 0.05),
    ],
)
def test_printed_numbers_carry_their_rounding(text, value, half):
    printed = parse_printed(text)
    assert printed.value == pytest.approx(value)
    assert printed.half == pytest.approx(half)


def test_rows_of_one_name_count_each_for_itself(tmp_path):
    file = tmp_path / "twice.csv"
    file.write_text("method,dataset,all,old,new\nSimGCD,x,60.0,70.0,55.0\nSimGCD,x,60.0,70.0,55.0\n")
    found = CliRunner().invoke(command, [str(file), "--expect", "x=0.3333", "--strict"])
    assert found.exit_code == 0, found.output
    assert "1 of 2 rows" not in found.output


def test_a_dash_is_nothing_and_a_word_is_refused():
    assert parse_printed("—") is None
    assert parse_printed("") is None
    with pytest.raises(ValueError, match="not a number"):
        parse_printed("about 70")


@pytest.fixture(scope="module")
def paper():
    known = {"kvasir": {"paper-stated": 1 / 3, "paper-implied": 4 / 9}, "nct-crc-he-100k": {"paper-stated": 0.36}}
    return audit(read_reported(PAPER) + read_reported(PAPER_ERRORS), known, "paper-stated")


def verdict(paper, method, dataset, table="main", variant=""):
    (found,) = [
        v
        for v in paper.rows
        if (v.row.method, v.row.dataset, v.row.table, v.row.variant) == (method, dataset, table, variant)
    ]
    return found


def test_kvasir_rows(paper):
    for method in ("uno_plus", "orca"):
        assert verdict(paper, method, "kvasir").status == "impossible"
        assert any(method in f and "impossible" in f for f in paper.findings)
    for method in ("rs_plus", "cms"):
        assert verdict(paper, method, "kvasir").status == "extreme"
    for method in ("simgcd", "legogcd", "nguf", "medxplore", "gcd", "dccl"):
        found = verdict(paper, method, "kvasir")
        assert found.status == "fits"
        assert 4 / 9 in found.share
    for method in ("simgcd", "legogcd", "nguf", "medxplore"):
        assert 1 / 3 not in verdict(paper, method, "kvasir").share


@pytest.mark.parametrize(
    ("dataset", "w", "fits"),
    [
        ("organamnist", 0.172, {"uno_plus", "gcd", "legogcd", "medxplore"}),
        ("organcmnist", 0.184, {"rs_plus", "uno_plus", "orca", "gcd", "legogcd", "medxplore"}),
        ("nct-crc-he-100k", 0.3592, {"orca", "legogcd", "medxplore"}),
    ],
)
def test_rows_that_share_one_w(paper, dataset, w, fits):
    (group,) = [g for g in paper.groups if g.dataset == dataset and g.table == "main"]
    assert set(group.explains) == fits
    assert w in group.consensus
    assert verdict(paper, "simgcd", dataset).status == "off"


def test_protocols_tables_and_decompositions_that_disagree(paper):
    (kvasir,) = [g for g in paper.groups if g.dataset == "kvasir"]
    stated, implied = kvasir.protocols
    assert len(stated.explains) == 1
    assert len(implied.explains) == 6
    (nct,) = [g for g in paper.groups if g.dataset == "nct-crc-he-100k"]
    assert nct.protocols[0].nearest == "orca"
    assert nct.protocols[0].nearest_miss == pytest.approx(0.02, abs=0.01)
    text = "\n".join(paper.findings)
    assert "claimed protocol paper-stated has w = 0.333, which explains 1 of 10" in text
    assert "'faac-buildup' wants w = 0.183 to 0.206" in text
    contradictions = [f for f in paper.findings if "error decomposition contradicts" in f]
    assert [f.split()[0] for f in contradictions] == ["simgcd", "medxplore"]
    for v in paper.rows:
        if v.row.table in ("ablation", "faac-buildup") and v.row.variant == "baseline":
            assert v.status == "off"


def test_a_decomposition_that_does_not_sum_and_a_row_printed_twice(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(
        "method,dataset,all,old,new,true_old_confusion,false_new,false_old,true_new_confusion\n"
        "a,d,80.0,80.0,80.0,5.00,5.00,5.00,4.00\n"
        "a,d,81.0,80.0,80.0,,,,\n"
        "b,d,80.0,80.0,80.0,5.00,5.00,5.00,5.00\n"
    )
    text = "\n".join(audit(read_reported(file)).findings)
    assert "a on d: All and the four error terms sum to 99.00" in text
    assert "printed twice" in text
    assert "b on d: " not in text


def test_fractions_semicolons_and_byte_order_marks_are_read(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("\ufeffMethod; Dataset;All;Old;New\nx;d;0.728;0.804;0.667\ny;d;—;0.8;0.7\n", encoding="utf-8")
    rows = read_reported(file)
    assert rows[0].scores["all"].value == pytest.approx(72.8)
    assert rows[0].scores["all"].half == pytest.approx(0.05)
    assert "cannot be checked" in audit(rows).findings[-1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("method,all,old,new\n", "no column 'dataset'"),
        ("method,dataset,all,old\nx,y,1,2\n", "no column 'new'"),
        ("method,dataset,all,old,new\n", "no rows"),
        ("method,dataset,all,old,new\nx,y,1,2,three\n", "line 2, column 'new'"),
    ],
)
def test_files_that_cannot_be_audited(tmp_path, content, message):
    file = tmp_path / "t.csv"
    file.write_text(content)
    with pytest.raises(DataError, match=message):
        read_reported(file)


def test_share_of_a_protocol_by_hand():
    # Eight classes of 500: four old with half labelled leave 4 * 250 of 3,000; with a fifth labelled 1,600 of 3,600.
    counts = (500,) * 8
    assert share_of_protocol(Protocol(name="p", old_count=4), counts) == pytest.approx(1000 / 3000)
    assert share_of_protocol(Protocol(name="p", old_count=4, label_fraction=0.2), counts) == pytest.approx(1600 / 3600)
    by_count = Protocol(name="p", old_rule="by-count", old_count=1)
    assert share_of_protocol(by_count, (10, 90)) == pytest.approx(45 / 55)


def test_a_claimed_share_that_explains_no_row_is_a_finding(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("method,dataset,all,old,new\nA,mydata,90.0,95.0,50.0\n")  # w = 0.889
    runner = CliRunner()
    wrong = runner.invoke(command, [str(file), "--expect", "mydata=0.2", "--strict"])
    assert wrong.exit_code == 1
    assert "w = 0.200, which explains 0 of 1 rows" in wrong.output
    right = runner.invoke(command, [str(file), "--expect", "mydata=0.889", "--strict"])
    assert right.exit_code == 0
    for arguments, said in (
        (["--expect", "mydta=0.2"], "did you mean 'mydata'"),
        (
            ["--protocol", "paper-stated"],
            "has a protocol 'paper-stated'; they have by-count",
        ),
        (["--protocol", "half"], "known for none of mydata"),
        (["--protocol", "half", "--expect", "mydata=0.2"], "give one of them"),
    ):
        refused = runner.invoke(command, [str(file), *arguments])
        assert isinstance(refused.exception, GCDBenchError)
        assert said in refused.exception.message


def test_the_command_prints_json_and_can_fail():
    runner = CliRunner()
    result = runner.invoke(command, [str(PAPER), str(PAPER_ERRORS), "--json", "--strict"])
    assert result.exit_code == 1
    value = json.loads(result.stdout)
    kvasir = {row["method"]: row for row in value["rows"] if row["dataset"] == "kvasir"}
    assert kvasir["uno_plus"]["w"] is None
    assert kvasir["simgcd"]["w"] == pytest.approx([0.438, 0.4526], abs=1e-3)
    shown = runner.invoke(command, [str(PAPER)])
    assert shown.exit_code == 0
    assert "impossible" in shown.output
    # Whatever the window's width, a row is one line with its whole verdict.
    assert re.search(r"orca +31\.5 +31\.2 +27\.3 +none +impossible by 0\.20", shown.output)
