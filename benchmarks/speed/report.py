"""The measured figures as Markdown tables, printed and put between two marks of docs/speed.md."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.speed.claims import MACHINES, describe_machines, gather
from gcdbench.views.setting import parse_views

WHOLE = {
    "published": "published style",
    "published, many runs": "published style, one run per core",
    "online": "online",
    "bank": "bank",
    "bank, many runs": "bank, one run per core",
}
"""Ways of working that whole runs are compared by."""

BOUNDS = ("bound_one_run", "bound_many_runs")

MARK = "measured"
"""Name of the marks that the tables of the main measurement stand between."""


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def describe_loops(rows: list[dict[str, Any]]) -> str:
    """Our loop against the published style."""
    steps, runs = [], []
    for row in rows:
        rate, whole = row["step_views_per_second"], row["run_views_per_second"]
        steps.append(
            [
                row["backbone"],
                *(f"{rate[kind]:.0f}" for kind in ("published", "online", "bank", "side by side")),
                f"{row['bank_views_per_second']:.0f}",
            ]
        )
        runs.append(
            [
                row["backbone"],
                *(f"{whole[kind]:.0f}" if kind in whole else "not measured" for kind in WHOLE),
                describe_ratio(row, "ratio_online"),
                f"**{describe_ratio(row, 'ratio_one_run')}**",
                f"**{describe_ratio(row, 'ratio_many_runs')}**",
                *(describe_ratio(row, name) if name in row else "not measured" for name in BOUNDS),
            ]
        )
    first = rows[0]
    seeds = f"{first['runs']} seeds"
    title = f"{first['image_size']} px, batch {first['batch']}, {first['views']}"
    whole_title = f"{first['images']} images, {first['epochs']} epochs, preparation, bank and evaluation included"
    return "\n\n".join(
        [
            f"Views per second in training steps alone ({title}):",
            table(
                ["network", "published style", "online", "bank", "bank, one run per core", "building the bank"], steps
            ),
            f"Views per second of whole runs ({whole_title}), and how many times the published style's that is:",
            table(
                ["network", *WHOLE.values(), "online ×", "bank ×", f"{seeds} ×", "bound ×", f"{seeds}, bound ×"], runs
            ),
            "The bound is the ratio if everything in our runs but the matrix products of the training steps were free.",
            *(describe_shares(row) for row in rows),
            *(describe_threads(row) for row in rows),
        ]
    )


def describe_shares(row: dict[str, Any]) -> str:
    """Where the time of a single run with stored views goes."""
    steps = row["run_views_per_second"]["bank"] / row["step_views_per_second"]["bank"]
    stored = row["images"] * (parse_views(row["views"]).count + 1)
    views = stored / row["bank_views_per_second"] / row["run_seconds"]["bank"]
    return (
        f"{row['backbone']}: of a single run {100 * steps:.0f} % are training steps and {100 * views:.0f} % making"
        " views, which further runs find."
    )


def describe_threads(row: dict[str, Any]) -> str:
    """All threads in one run against one run per core: the steps, and their matrix products alone."""
    rates = row["step_views_per_second"]
    products = median(
        1 / one["products"]["products_alone"] / sum(1 / each["products_alone"] for each in one["products_side_by_side"])
        for one in row["rounds"]
    )
    return (
        f"{row['backbone']}: all threads in one run do {100 * rates['bank'] / rates['side by side']:.0f} % of the"
        f" steps that one run per core does; of the matrix products alone, {100 * products:.0f} %."
    )


def describe_ratio(row: dict[str, Any], name: str) -> str:
    """A ratio, and its range over the rounds where there were several."""
    each = row.get("ratios_by_round", {}).get(name, [])
    return f"{row[name]:.1f}" + (f" ({min(each):.1f} to {max(each):.1f})" if len(each) > 1 else "")


def describe_prefix(rows: list[dict[str, Any]]) -> str:
    """Chunk sizes and threads."""
    kinds = ("one_thread", "a_chunk_a_thread", "all_threads_on_one")
    body = [
        [row["backbone"], one["chunk"], *(f"{one[kind]:.0f}" for kind in kinds)] for row in rows for one in row["rows"]
    ]
    return "Views per second of the frozen prefix, by images that go through it at once (a bank takes 64):\n\n" + table(
        ["network", "images at once", "one thread", "a chunk for each core", "all cores on one chunk"], body
    )


def describe_kernels(rows: list[dict[str, Any]]) -> str:
    """What compiled kernels gain."""
    repeats = len(rows[0]["repeats"]["native"])
    body = [
        [
            "any" if row["what"] == "views" else row["backbone"],
            f"{row['what']}, {row['unit']}",
            *(f"{row[way]:.3g}" if row[way] < 100 else f"{row[way]:.0f}" for way in ("with", "without")),
            f"{row['gain']:.2f}",
        ]
        for row in rows
    ]
    return (
        f"With compiled kernels and without (`GCDBENCH_NATIVE=0`), one thread, median of {repeats} repeats:\n\n"
        + table(["network", "", "with", "without", "gain"], body)
    )


def describe_step(rows: list[dict[str, Any]]) -> str:
    """Shares of a step."""
    kinds = {"products": "products", "filters": "depth-wise filters with their norms", "other": "everything else"}
    kinds = {kind: title for kind, title in kinds.items() if kind in rows[0]["shares"]}
    body = [
        [
            row["backbone"],
            f"{1e3 * row['step']:.0f}",
            f"{1e3 * row['products_alone']:.0f}",
            f"{row['ratio']:.2f}",
            *(f"{1e3 * row[key]:.0f}" if key in row else "not measured" for key in LIBRARIES),
            *(f"{100 * row['shares'][kind]:.1f} %" for kind in kinds),
        ]
        for row in rows
    ]
    others = [f"the same by {name}, ms" for name in LIBRARIES.values()]
    header = ["network", "step, ms", "its matrix products alone, ms", "ratio", *others, *kinds.values()]
    gains = [describe_library(row) for row in rows if all(key in row for key in LIBRARIES)]
    return "\n\n".join(["One step, one thread, from the bank:", table(header, body), *gains])


LIBRARIES = {"products_by_blas": "torch's BLAS library", "products_by_numpy": "numpy's"}
"""Other ways to multiply the matrices of a step."""


def describe_library(row: dict[str, Any]) -> str:
    """How long a step would take with its matrix products in another library's time."""
    changes = {name: 100 * (row[key] - row["products_alone"]) / row["step"] for key, name in LIBRARIES.items()}
    told = [
        f"{abs(change):.0f} % {'longer' if change > 0 else 'shorter'} with {name}" for name, change in changes.items()
    ]
    return f"{row['backbone']}: a step would be {' and '.join(told)}."


def describe_rounding(found: dict[str, Any]) -> str:
    """What storing views in few bits loses."""
    body = [[row["stored"], f"{100 * row['error']:.2f} %", f"{row['distance']:.0e}"] for row in found["rows"]]
    title = (
        f"What stored views lose: {found['views']} views at {found['image_size']} px through pretrained Lite0. The"
        " error is the root mean square over the spread of the prefix's outputs; the cosine distance is that of the"
        f" pooled features, where two views of one image are {found['two_views']:.1f} apart."
    )
    return f"{title}\n\n" + table(["stored in", "error", "cosine distance"], body)


def describe_scaling(rows: list[dict[str, Any]]) -> str:
    """Cost against N, K and V."""
    body = [
        [
            f"{row['axis']} = {row['value']}",
            f"{row['bank_ms_a_view']:.2f}",
            f"{row['step_ms']:.0f}",
            f"{row['predict_ms_an_image']:.2f}",
        ]
        for row in rows
    ]
    return "Cost against the number of images N, clusters K and stored views V:\n\n" + table(
        ["", "bank, ms per view", "fastest step, ms", "prediction, ms per image"], body
    )


def describe_scoring(rows: list[dict[str, Any]]) -> str:
    """Metrics against the loop."""
    body = [
        [
            f"{row['samples']:,}",
            f"{1e3 * row['headline']:.1f}",
            f"{1e3 * row['all_metrics']:.0f}",
            f"{1e3 * row['loop']:.0f}",
            f"{row['loop'] / row['headline']:.0f}",
        ]
        for row in rows
    ]
    return "Scoring, K = 100, in ms:\n\n" + table(
        ["predictions", "headline accuracy", "all metrics", "per-sample loop, headline only", "ratio"], body
    )


def describe_startup(row: dict[str, float]) -> str:
    """Start-up."""
    return (
        f"`gcdbench --help` takes {row['help']:.2f} s, `python -c 'import click'` {row['click']:.2f} s:"
        f" {row['help'] - row['click']:.2f} s more."
    )


def describe_first_run(rows: list[dict[str, Any]]) -> str:
    """What a newcomer waits for."""
    ways = {"native": "compiled kernels", "torch": "none"}
    cells = {(row["what"], row["kernels"]): row for row in rows}
    body = []
    for what in dict.fromkeys(row["what"] for row in rows):
        line: list[str] = [what]
        for way in ways:
            row = cells[what, way]
            said = "nothing" if row["expected"] is None else f"{row['expected']:.0f}"
            line += [f"{row['seconds']:.1f}", said]
        body.append(line)
    header = ["seconds", *(text for title in ways.values() for text in (title, f"{title}, said before"))]
    return "Commands in new processes, from an empty cache, one after the other:\n\n" + table(header, body)


DESCRIBE: dict[str, Callable[[Any], str]] = {
    "first_run": describe_first_run,
    "kernels": describe_kernels,
    "loops": describe_loops,
    "prefix": describe_prefix,
    "step": describe_step,
    "scaling": describe_scaling,
    "rounding": describe_rounding,
    "scoring": describe_scoring,
    "startup": describe_startup,
}


EARLIER = Path(__file__).parent / "earlier.json"
"""Sections measured before, on another machine."""


def describe_results(results: dict[str, Any]) -> list[str]:
    """What was measured on one machine: a line on it, and a table for each section."""
    machine = results["machine"]
    dates = ", ".join(sorted({when["date"] for when in results["when"].values()}))
    first = (
        f"Measured {dates} on {machine['cores']} cores ({machine['cpu']}), torch {machine['packages']['torch']},"
        f" {machine['kernels']} kernels, {machine['images']} images."
    )
    return [first, *(describe(results[name]) for name, describe in DESCRIBE.items() if name in results)]


def write_tables(results: dict[str, Any], document: Path | None) -> str:
    """All tables as text; also put between the marks of ``document``, those of another machine after them."""
    parts = describe_results(results)
    if document is not None and EARLIER.is_file():
        parts += ["### Earlier, on another machine", *describe_results(json.loads(EARLIER.read_text(encoding="utf-8")))]
    machines = gather(results, json.loads(MACHINES.read_text(encoding="utf-8")))
    parts += ["### Every machine", "Whole runs against the published style:", table(*describe_machines(machines))]
    text = "\n\n".join(parts)
    if document is not None:
        put_between_marks(text, document)
    return text


def put_between_marks(text: str, document: Path, mark: str = MARK) -> None:
    """Replace what stands between the two marks of that name in ``document``."""
    begin, end = (f"<!-- {mark}: {place} -->" for place in ("begin", "end"))
    page = document.read_text(encoding="utf-8")
    head, _, rest = page.partition(begin)
    tail = rest.partition(end)[2]
    document.write_text(f"{head}{begin}\n\n{text}\n\n{end}{tail}", encoding="utf-8")
