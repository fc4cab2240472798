"""A table on a terminal, with the reader's width and colours."""

from __future__ import annotations

from gcdbench.tables.grid import Grid, GridCell


def show(grid: Grid) -> None:
    """Print through rich: bold is bold, intervals are dim, sections are headings."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    def markup(cell: GridCell) -> str:
        text = escape(cell.text)
        return f"[bold]{text}[/bold]" if cell.bold else f"[dim]{text}[/dim]" if cell.faint else text

    groups = [text for text, span in grid.header[0] for _ in range(span)]
    console = Console()
    table = Table(title=grid.title, box=box.SIMPLE, title_justify="left", pad_edge=False, padding=(0, 1))
    before = ""
    for i, (text, _) in enumerate(grid.header[-1]):
        group = groups[i] if groups[i] != before else ""
        before = groups[i]
        justify = "left" if i < grid.label_columns else "right"
        table.add_column(f"{group}\n{text}", justify=justify, no_wrap=i >= grid.label_columns)  # type: ignore[arg-type]
    for row in grid.rows:
        if row.section:
            table.add_section()
            table.add_row(f"[italic]{escape(row.section)}[/italic]")
        else:
            table.add_row(*map(markup, row.cells))
    console.print(table)
    for line in (grid.caption, *grid.notes):
        console.print(escape(line), style="dim", soft_wrap=True, highlight=False)
