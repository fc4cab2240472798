"""A table as HTML: a fragment that needs no style sheet and no script to be read, and serves both well."""

from __future__ import annotations

from html import escape

from gcdbench.reporting.tables.grid import Grid, GridCell


def render_html(grid: Grid, *, titled: bool = True) -> str:
    """``<figure>`` with a caption, one ``<tbody>`` per section, ``data-value`` for sorting, and the notes.

    titled: begin the caption with the title; a page that has it as a heading does not need it twice.
    """
    title = f"<strong>{escape(grid.title)}.</strong> " if titled else ""
    groups = "".join(f'<th colspan="{span}" scope="colgroup">{escape(text)}</th>' for text, span in grid.header[0])
    label = ' class="label"'
    leaves = "".join(
        f'<th scope="col"{label if grid.is_text(i) else ""}>{escape(text)}</th>'
        for i, (text, _) in enumerate(grid.header[-1])
    )
    lines = [
        '<figure class="result">',
        f"<figcaption>{title}{escape(grid.caption)}</figcaption>",
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(grid.title)}">',
        "<table>",
        "<thead>",
        *([f"<tr>{groups}</tr>"] if any(text for text, _ in grid.header[0]) else []),
        f'<tr class="leaf">{leaves}</tr>',
        "</thead>",
    ]
    opened = False
    for row in grid.rows:
        if row.section:
            lines += ["</tbody>"] if opened else []
            heading = f'<th colspan="{grid.width}" scope="rowgroup">{escape(row.section)}</th>'
            lines.append(f'<tbody><tr class="section">{heading}</tr>')
            opened = True
            continue
        if not opened:
            lines.append("<tbody>")
            opened = True
        lines.append("<tr>" + "".join(map(_cell, row.cells)) + "</tr>")
    lines += ["</tbody>"] if opened else []
    lines += ["</table>", "</div>"]
    if grid.notes:
        lines += ['<ul class="notes">', *(f"<li>{escape(note)}</li>" for note in grid.notes), "</ul>"]
    return "\n".join([*lines, "</figure>"]) + "\n"


def _cell(cell: GridCell) -> str:
    text = f"<strong>{escape(cell.text)}</strong>" if cell.bold else escape(cell.text)
    kind = "label" if cell.is_label else "number"
    classes = f"{kind} faint" if cell.faint else kind
    value = "" if cell.value is None else f' data-value="{cell.value:.6g}"'
    if cell.is_label and not cell.faint:
        return f'<th scope="row" class="{classes}"{value}>{text}</th>'
    return f'<td class="{classes}"{value}>{text}</td>'
