"""For one release, records and events can be read by string, like the dictionaries that observers used to get."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Base = object  # to the type checker they are not mappings: nothing of ours may read them by string
else:
    Base = Mapping


class OldMapping(Base):
    """Reads like the dictionary that was here before, with a note that says what to write instead."""

    def to_table(self) -> dict[str, Any]:
        """What is stored, as plain values."""
        raise NotImplementedError

    def _old_table(self) -> dict[str, Any]:
        name = type(self).__name__
        warnings.warn(
            f"reading a {name} like a dictionary will not work in the next release: use its attributes, or to_table()",
            DeprecationWarning,
            stacklevel=3,
        )
        return self.to_table()

    if not TYPE_CHECKING:

        def __getitem__(self, key: str) -> Any:
            return self._old_table()[key]

        def get(self, key: str, default: Any = None) -> Any:
            """As in a dictionary."""
            return self._old_table().get(key, default)

        def __contains__(self, key: object) -> bool:
            return key in self._old_table()

        def __iter__(self) -> Iterator[str]:
            return iter(self._old_table())

        def __len__(self) -> int:
            return len(self._old_table())

        def __bool__(self) -> bool:
            return True
