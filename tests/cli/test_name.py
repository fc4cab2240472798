"""``gcdbench name``: from a names.toml to what ``predict`` prints."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

from tests.runs.own_images import SMALL, draw_classes

Cli = Callable[..., Result]


def test_predict_prints_the_names(cli: Cli, tmp_path: Path) -> None:
    labelled, pile = (
        draw_classes(tmp_path / "known", ("a", "b"), 5),
        draw_classes(tmp_path / "pile", ("x", "y", "z"), 5),
    )
    # k-means uses every cluster, so that there is something to name.
    command = ("discover", "--labelled", labelled, "--unlabelled", pile, "--k", 6, "-m", "kmeans", *SMALL, "--json")
    result = cli(*command, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    with (tmp_path / "out" / "predictions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    new = sorted({int(row["cluster"]) for row in rows if row["kind"] == "new"})
    assert len(new) >= 3
    names = tmp_path / "names.toml"
    names.write_text(
        f'run = "{told["run"]}"\n[clusters.{new[0]}]\nname = "Ulcus, frisch"\n'
        f"[clusters.{new[1]}]\nmerge_into = {new[0]}\n[clusters.{new[2]}]\nrejected = true\n"
    )
    assert cli("name", told["run"], names).exit_code == 0
    assert cli("verify").exit_code == 0
    out = tmp_path / "new.csv"
    assert cli("predict", told["run"], pile, "-o", out, "-q").exit_code == 0
    with out.open(newline="") as file:
        said = list(csv.DictReader(file))
    clusters = {int(row["cluster"]): row for row in said}
    assert clusters[new[0]]["name"] == clusters[new[1]]["name"] == "Ulcus, frisch"
    assert clusters[new[2]]["kind"] == "rejected"
    again = cli(*command, "-o", tmp_path / "again")
    assert json.loads(again.stdout)["reused"]
    assert "Ulcus, frisch" in (tmp_path / "again" / "gallery.html").read_text(encoding="utf-8")
    assert (tmp_path / "again" / "names.toml").read_text() == (Path(told["path"]) / "names.toml").read_text()
    names.write_text(f'run = "{told["run"]}"\n[clusters.99]\nname = "x"\n')
    refused = cli("name", told["run"], names)
    assert refused.exit_code
    assert "no cluster 99" in refused.stderr
