"""What is made of stored runs: suites, tables, figures, reports, explanations, statistics, published numbers."""
