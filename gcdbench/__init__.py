"""gcdbench: a benchmark toolkit for generalized category discovery."""

__version__ = "0.1.0"
