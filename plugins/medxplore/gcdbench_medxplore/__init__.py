"""MedXplore: FAAC and ACAM on top of SimGCD, as a plugin of gcdbench."""

__version__ = "0.2.0"
