"""Suites: what one table or figure of the benchmark asks for, and which of its runs exist."""
