"""The small folders of the data tests."""

from __future__ import annotations

from tests.data.conftest import cache, make_folder, no_data

__all__ = ["cache", "make_folder", "no_data"]
