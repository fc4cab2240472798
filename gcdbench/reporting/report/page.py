"""The page around the parts: one file, no request, no script but its own."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page: its anchor, its entry in the navigation, its heading and its HTML."""

    anchor: str
    short: str
    title: str
    body: str


def asset(name: str) -> str:
    """A file of ``assets/``."""
    return (files("gcdbench.reporting.report") / "assets" / name).read_text(encoding="utf-8")


def render_page(title: str, lead: str, sections: Sequence[Section], footer: str) -> str:
    """The whole document.

    The content policy allows this style, this one script (by its hash) and images inside the file, nothing else:
    a name in an imported run that looks like markup can neither run nor load anything.
    """
    script, style = asset("report.js"), asset("report.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    links = "".join(f'<li><a href="#{s.anchor}">{escape(s.short)}</a></li>' for s in sections)
    body = "\n".join(
        f'<section id="{s.anchor}" aria-labelledby="{s.anchor}-title">'
        f'<h2 id="{s.anchor}-title">{escape(s.title)}</h2>\n{s.body}</section>'
        for s in sections
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<a class="skip" href="#{sections[0].anchor if sections else "top"}">Skip to the results</a>
<header><div><h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p></div>
<button id="theme" type="button">Light / dark</button></header>
<nav aria-label="Sections"><ul>{links}</ul></nav>
<main>
{body}
</main>
<footer>{escape(footer)}</footer>
<script>{script}</script>
</body>
</html>
"""
