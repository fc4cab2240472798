"""Write the study's pages, its tables and the README's results from the stored runs.

python -m benchmarks.medxplore [--check]
"""

from __future__ import annotations

import argparse

from benchmarks.medxplore.pages import all_pages
from benchmarks.medxplore.places import FIGURES, ROOT, RUNS
from benchmarks.medxplore.split_figure import NAME, split_figure
from gcdbench.api import cell_records, load_runs


def main() -> None:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.medxplore", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; fail where the numbers do not follow")
    options = parser.parse_args()
    records = cell_records(load_runs(RUNS))
    figure = None if options.check else split_figure(records)
    if figure is not None:  # before the pages: the report shows it where it is there
        (FIGURES / NAME).write_text(figure, encoding="utf-8")
    for path, text in all_pages(records).items():
        if options.check and path.read_text(encoding="utf-8") != text:
            raise SystemExit(f"The numbers of {path.relative_to(ROOT)} do not follow from the stored runs.")
        if not options.check:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
