"""The pages of the study and its tables, made from the stored runs.

``templates/report.md``, ``ledger.md`` and ``notebook.md`` are Jinja templates in which every measured number is an
expression (:mod:`benchmarks.medxplore.facts`); they become the pages of the same names. ``templates/readme.md`` becomes
what stands between two marks in the repository's README. In the ledger, what follows ``<!-- measured -->`` in a row is
what Kvasir runs say about the variants and settings that the row names. ``tables/SUITE.md`` is a suite's table,
``tables/SUITE.against-ROW.md`` the differences to one of its rows.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from benchmarks.medxplore.facts import Facts
from benchmarks.medxplore.groups import PRESET, Group, measured_effects
from benchmarks.medxplore.places import LEDGER, NOTEBOOK, README, REPORT, TABLES, TEMPLATES
from benchmarks.medxplore.seed_tables import STUDY
from gcdbench.api import (
    TRANSDUCTIVE,
    CellRecord,
    RunBootstrap,
    get_manager,
    load_suite,
    render,
    suite_table,
)

README_BLOCK = re.compile(r"(?P<begin><!-- medxplore -->\n).*?(?P<end><!-- end of medxplore -->)", re.DOTALL)
LEDGER_ROW = re.compile(r"^(?P<begin>\| \d+ \|.*\| (?P<settings>[^|]*) \|[^|]*<!-- measured -->)[^|]*\|$", re.MULTILINE)
MINUS = "\N{MINUS SIGN}"


def fixed(value: float, places: int = 1) -> str:
    """A number with so many decimals."""
    return f"{value:.{places}f}".replace("-", MINUS)


def signed(value: float, places: int = 1) -> str:
    """The same with its sign."""
    text = f"{value:+.{places}f}"
    return text.replace("-", MINUS) if float(text) else text[1:]


def listed(texts: Sequence[str]) -> str:
    """``a, b and c``."""
    *most, last = texts
    return f"{', '.join(most)} and {last}" if most else last


def each(values: Sequence[float], form: str, places: int = 1) -> list[str]:
    """Every value as ``fixed`` or ``signed`` has it."""
    return [{"fixed": fixed, "signed": signed}[form](value, places) for value in values]


def p_value(value: float) -> str:
    """Two digits that count."""
    return f"{value:.2g}"


def below(values: Sequence[float], bound: float) -> int:
    """How many values are below a bound."""
    return sum(value < bound for value in values)


def environment(facts: Facts) -> Environment:
    """Jinja with the facts as its words; a name that does not exist is an error."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    words = [name for name in dir(Facts) if not name.startswith("_") and callable(getattr(Facts, name))]
    made.globals |= {name: getattr(facts, name) for name in words}
    made.filters |= {"fixed": fixed, "signed": signed, "listed": listed, "p": p_value, "below": below}
    made.filters |= {"mean": statistics.mean, "each": each}
    return made


def fill_ledger(page: str, groups: Sequence[Group]) -> str:
    """The page with what was measured after every mark."""
    return LEDGER_ROW.sub(lambda row: f"{row['begin']} {measured_effects(row['settings'], groups)} |", page)


def fill_readme(page: str, facts: Facts) -> str:
    """The README with the study's results between the marks."""
    made = environment(facts).get_template("readme.md").render()
    return README_BLOCK.sub(lambda found: f"{found['begin']}\n{made.strip()}\n\n{found['end']}", page)


def suite_page(path: Path, records: Sequence[CellRecord]) -> str:
    """The table that a file of ``tables/`` is named after."""
    suite, _, row = path.stem.partition(".against-")
    table = suite_table(
        load_suite(f"{STUDY}/{suite}", get_manager()),
        records,
        get_manager(),
        preset=PRESET,
        bootstrap=RunBootstrap(TRANSDUCTIVE),
        against=row or None,
    )
    return render(table, "markdown")


def written_pages(records: Sequence[CellRecord]) -> dict[Path, str]:
    """The pages in words, as the records have them."""
    facts = Facts(records)
    jinja = environment(facts)
    pages = {path: jinja.get_template(path.name).render() for path in (REPORT, LEDGER, NOTEBOOK)}
    pages[LEDGER] = fill_ledger(pages[LEDGER], facts.groups)
    return {**pages, README: fill_readme(README.read_text(encoding="utf-8"), facts)}


def all_pages(records: Sequence[CellRecord]) -> dict[Path, str]:
    """Every page that holds measured numbers, as the records have them."""
    return {**written_pages(records), **{path: suite_page(path, records) for path in sorted(TABLES.glob("*.md"))}}
