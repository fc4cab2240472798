"""What the site holds beside docs/: the study's pages, the changelog, and links into the repository.

Pages are written for readers of the repository, so their links lead to files. Here a link to a file that is a page of
the site becomes a link to that page, and one to any other file a link to the repository's address.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
STUDY = ROOT / "benchmarks" / "medxplore"
REST = "<!-- the rest of gcdbench.api -->"
SHOWN = {
    "<!-- what the README shows of the first run -->": "On D_u",
    "<!-- what the README shows of the table -->": "dataset  method",
}
"""Marks of pages, and a part of the README's block that stands there in the site: numbers are written once."""
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)(?P<target>[^)\s#]+)(?P<heading>#[^)\s]*)?(?=\))")


def brought_files() -> dict[str, Path]:
    """Address in the site's sources → file of the repository outside of docs/."""
    pages = {f"studies/medxplore/{name}.md": STUDY / f"{name}.md" for name in ("report", "ledger", "notebook")}
    figures = {f"studies/medxplore/figures/{file.name}": file for file in sorted((STUDY / "figures").iterdir())}
    return {**pages, **figures, "changes.md": ROOT / "CHANGELOG.md", "contributing.md": ROOT / "CONTRIBUTING.md"}


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add what is brought from outside of docs/."""
    for uri, file in brought_files().items():
        files.append(File.generated(config, uri, content=file.read_bytes()))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links to files of the repository into links that work in the site."""
    brought = brought_files()
    here = page.file.src_uri
    if REST in markdown:
        markdown = markdown.replace(REST, rest_of_interface(markdown))
    for mark, part in SHOWN.items():
        if mark in markdown:
            markdown = markdown.replace(mark, shown_in_readme(part))
    folder = brought[here].parent if here in brought else (ROOT / "docs" / here).parent

    def lead(found: re.Match[str]) -> str:
        file = folder / found["target"]
        if not file.exists():
            return found[0]  # the strict build says so
        return link_to(file, here, brought, str(config.extra["repository"])) + (found["heading"] or "")

    return LINK.sub(lead, markdown)


def shown_in_readme(part: str) -> str:
    """The README's block of plain text that holds ``part``."""
    blocks: list[str] = re.findall(r"^```\n.*?^```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    [found] = [block for block in blocks if part in block]
    return found


def rest_of_interface(page: str) -> str:
    """A directive for every name of ``gcdbench.api`` that the page has in no group of its own."""
    import gcdbench.api

    shown = {name for group in re.findall(r"members: \[(.*?)\]", page) for name in group.split(", ")}
    left = sorted(set(gcdbench.api.__all__) - shown)
    options = ("show_root_heading: false", "show_root_toc_entry: false", "show_docstring_description: false")
    lines = ["::: gcdbench.api", "    options:", *(f"      {option}" for option in options)]
    return "\n".join([*lines, f"      members: [{', '.join(left)}]"])


def link_to(file: Path, here: str, brought: dict[str, Path], repository: str) -> str:
    """The link from the page at the address ``here`` to a file that exists."""
    file = Path(os.path.normpath(file))
    addresses = {path: uri for uri, path in brought.items()}
    inside = file.relative_to(ROOT).as_posix()
    if file in addresses or (inside.startswith("docs/") and file.is_file()):
        return posixpath.relpath(addresses.get(file) or inside.removeprefix("docs/"), posixpath.dirname(here) or ".")
    return f"{repository}/{'tree' if file.is_dir() else 'blob'}/main/{inside}"
