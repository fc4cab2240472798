"""What may be said about speed: the lowest ratio of every machine that was measured, with that machine.

Machines measured earlier are in machines.json (two cores each), the last one in speed.json. The README's sentence and
the table of docs/speed.md are made here, so neither can claim more than was measured.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

MACHINES = Path(__file__).parent / "machines.json"
BEGIN, END = "<!-- speed: begin -->", "<!-- speed: end -->"
KINDS = {"ratio_one_run": "one run", "ratio_many_runs": "ten seeds", "ratio_online": "online"}


def gather(results: dict[str, Any], earlier: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All machines: those measured earlier, and that of ``results`` where its loops were measured."""
    if "loops" not in results:
        return earlier
    date = results["when"]["loops"]["date"]
    ratios = {row["backbone"]: {kind: worst(row, kind) for kind in KINDS} for row in results["loops"]}
    return [*earlier, {"machine": f"{results['machine']['cpu']}, {date}", "ratios": ratios}]


def worst(row: dict[str, Any], kind: str) -> float:
    """The lowest ratio of all rounds."""
    return float(min([row[kind], *row.get("ratios_by_round", {}).get(kind, [])]))


def lowest(machines: list[dict[str, Any]], backbone: str, kind: str) -> tuple[float, str]:
    """The lowest ratio and the machine it was measured on."""
    return min(
        (entry["ratios"][backbone][kind], entry["machine"]) for entry in machines if kind in entry["ratios"][backbone]
    )


def describe_machines(machines: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a table of all machines; the lowest of each column is bold."""
    columns = [(backbone, kind) for backbone in machines[0]["ratios"] for kind in KINDS]
    header = ["two cores of", *(f"{backbone}, {KINDS[kind]}" for backbone, kind in columns)]
    rows = []
    for entry in machines:
        cells = [entry["machine"]]
        for backbone, kind in columns:
            value = entry["ratios"][backbone].get(kind)
            text = "not measured" if value is None else f"{value:.1f}"
            cells.append(f"**{text}**" if value is not None and value == lowest(machines, backbone, kind)[0] else text)
        rows.append(cells)
    return header, rows


def make_claim(machines: list[dict[str, Any]], backbone: str = "efficientnet-lite0") -> str:
    """The sentence of the README."""
    one, where = lowest(machines, backbone, "ratio_one_run")
    many, there = lowest(machines, backbone, "ratio_many_runs")
    both = where if where == there else f"{where}; {there}"
    return (
        f"on two cores one run of EfficientNet-Lite0 is {one:.1f} times as fast as a loop in the published\n"
        f"  style, and ten seeds are {many:.1f} times as fast, on the slowest of {len(machines)} machines ({both})"
    )


def write_claim(results: dict[str, Any], readme: Path) -> None:
    """Put the sentence between the marks of the README; a README without them stays as it is."""
    page = readme.read_text(encoding="utf-8")
    head, begun, rest = page.partition(BEGIN)
    if begun:
        claim = make_claim(gather(results, json.loads(MACHINES.read_text(encoding="utf-8"))))
        readme.write_text(f"{head}{BEGIN}{claim}{END}{rest.partition(END)[2]}", encoding="utf-8")
