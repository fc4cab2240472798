"""A machine without data of its own."""

from __future__ import annotations

from tests.data.conftest import no_data

__all__ = ["no_data"]
