"""The natural-image benchmarks of generalized category discovery: suites and published numbers for gcdbench."""

__version__ = "0.2.0"
