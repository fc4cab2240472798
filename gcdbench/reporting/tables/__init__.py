"""Tables: from run records to terminal, Markdown, LaTeX, CSV, JSON and HTML."""
