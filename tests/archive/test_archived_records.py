"""Records, scores and predictions in an archive that do not hold together, or that other metrics made."""

from __future__ import annotations

import hashlib
import io
import json

import numpy as np
import pytest
from click.testing import CliRunner

from gcdbench.cli.import_ import command as import_command
from gcdbench.core.identity import digest, run_id
from gcdbench.runs.archive.merge import merge_archive
from gcdbench.runs.index import load_runs
from gcdbench.runs.reader import read_scores
from gcdbench.runs.strict_json import SEAL
from tests.archive.archives import prefix_of, refused, with_manifest, write_zip


def edited(packed, file, change):
    """The archive's members with one JSON file changed and everything else, hashes included, made to fit."""
    name = f"{prefix_of(packed)}/{file}"
    value = json.loads(packed[name])
    del value[SEAL]
    change(value)
    seal = digest(value) if "NaN" not in json.dumps(value) else ""
    return with_manifest({**packed, name: json.dumps({**value, SEAL: seal}).encode()})


def named(record):
    return {"run_id": run_id(record["identity"])}


def set_nmi(scores, value):
    scores["sets"]["transductive"]["scores"]["nmi"] = value


@pytest.mark.parametrize(
    ("file", "change", "reason"),
    [
        ("run.json", lambda r: r.update(schema=99), "schema 99"),
        ("run.json", lambda r: r["identity"].update(seed=5), "does not follow from 'identity'"),
        ("run.json", lambda r: (r["identity"].update(seed=5), r.update(named(r), seed=5)), "not named after"),
        ("run.json", lambda r: r.update(status="failed"), "is failed, not finished"),
        ("run.json", lambda r: r.update(dataset="../../etc"), "belongs to"),
        ("run.json", lambda r: r.update(seed="<script>"), "'seed'"),
        ("run.json", lambda r: r["predictions"]["transductive"].update(sha256="0" * 64), "lacks the predictions"),
        ("run.json", lambda r: r["predictions"]["transductive"].update(file="../x.npz"), "not a file of a run"),
        ("run.json", lambda r: r.update(predictions={}), "no predictions"),
        ("scores.json", lambda s: s["sets"]["transductive"]["scores"].update(all=99.9), "do not follow"),
        ("scores.json", lambda s: s["sets"]["transductive"]["scores"].update(nmi="high"), "must be a table of numbers"),
        ("scores.json", lambda s: s["sets"]["transductive"]["scores"].update(all=float("nan")), "NaN"),
        ("scores.json", lambda s: s.update(sets={}), "no scores for"),
        ("scores.json", lambda s: s["sets"]["transductive"]["scores"].update(false_old=0.0), "'false_old'"),
        ("scores.json", lambda s: s["sets"]["transductive"]["scores"].update(k_hat=80.0), "'k_hat'"),
        ("scores.json", lambda s: s["sets"]["transductive"]["confusion"][0].reverse(), "'confusion'"),
        ("scores.json", lambda s: s["sets"]["transductive"].update(confusion=[[1, 2, 0], [3, 4, 0]]), "'confusion'"),
        ("scores.json", lambda s: s["sets"]["transductive"].update(n=24_000), "'n' on"),
        ("scores.json", lambda s: s["sets"]["transductive"].update(old_share=0.9), "'old_share'"),
        ("scores.json", lambda s: s["sets"].update(inductive=s["sets"]["transductive"]), "no predictions for"),
        ("scores.json", lambda s: (s.update(metrics={}), set_nmi(s, 99.0)), "'nmi'"),
        ("env.json", lambda e: e.update(packages=[]), "'packages' must be a table"),
        ("env.json", lambda e: e.update(cpu="another"), "not what the run recorded"),
        ("run.json", lambda r: r["files"].update({"extra.json": r["files"]["env.json"]}), "lacks 'extra.json'"),
        ("run.json", lambda r: r["split"]["new_classes"].append("one more"), "its split has 9"),
    ],
)
def test_records_that_do_not_hold_together(tmp_path, packed, file, change, reason):
    refused(tmp_path, write_zip(tmp_path / "x.zip", edited(packed, file, change)), reason)


def test_scores_of_metrics_that_are_not_here_are_dropped_with_a_note(tmp_path, packed, manager):
    members = edited(
        packed, "scores.json", lambda s: s["sets"]["transductive"]["scores"].update(accuracy_by_experts=99.9)
    )
    here = tmp_path / "here"
    merged = merge_archive(write_zip(tmp_path / "x.zip", members), here, manager=manager)
    assert merged.dropped == {prefix_of(packed): ("accuracy_by_experts",)}
    [run] = load_runs(here)
    assert "accuracy_by_experts" not in read_scores(run.path).sets["transductive"].scores
    result = CliRunner().invoke(import_command, [str(tmp_path / "x.zip"), "--runs", str(tmp_path / "other")])
    assert "dropped" in result.output
    assert "accuracy_by_experts" in result.output


def test_another_version_of_a_metric_may_say_something_else_and_ours_is_kept(tmp_path, packed, manager):
    def change(scores):
        scores["metrics"]["nmi"] = "gcdbench/0"
        set_nmi(scores, 12.5)

    here = tmp_path / "here"
    merged = merge_archive(write_zip(tmp_path / "x.zip", edited(packed, "scores.json", change)), here, manager=manager)
    assert merged.replaced == {prefix_of(packed): ("nmi",)}
    [run] = load_runs(here)
    theirs = json.loads(packed[f"{prefix_of(packed)}/scores.json"])
    kept = read_scores(run.path)
    assert kept.sets["transductive"].scores == theirs["sets"]["transductive"]["scores"]
    assert kept.metrics["nmi"] == theirs["metrics"]["nmi"]


@pytest.mark.parametrize(
    "arrays",
    [
        {"cluster": np.zeros((240, 2), dtype=np.int64)},
        {"cluster": np.full(240, -1)},
        {"y_true": np.full(240, 2**60)},
        {"y_true": np.zeros(240)},
        {"is_old": np.zeros((8, 2), dtype=bool)},
        {"is_old": np.zeros(8, dtype=np.int64)},
        {"is_old": np.zeros(50_000, dtype=bool)},
        {"group": np.zeros(3, dtype=np.int64)},
        {"k_hat": np.arange(3)},
        {"ids": np.array(["a"] * 240)},
    ],
)
def test_predictions_that_are_none(tmp_path, packed, arrays):
    file = f"{prefix_of(packed)}/predictions/transductive.npz"
    with np.load(io.BytesIO(packed[file])) as found:
        content = {**found, **arrays}
    buffer = io.BytesIO()
    np.savez(buffer, **content)
    body = buffer.getvalue()
    sha256 = hashlib.sha256(body).hexdigest()

    def change(record):
        record["predictions"]["transductive"]["sha256"] = sha256
        record["files"]["predictions/transductive.npz"] = {"sha256": sha256, "size": len(body)}

    members = edited({**packed, file: body}, "run.json", change)
    refused(tmp_path, write_zip(tmp_path / "x.zip", members), "cannot be scored")
