"""Figures from stored runs. Needs matplotlib: ``pip install 'gcdbench[figures]'``."""
