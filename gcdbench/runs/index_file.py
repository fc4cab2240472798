"""The index of a store of runs: a disposable SQLite file in the user's cache, named after the store's path.

Not in the store, which may be read-only or be on a network file system. Whatever is wrong with the file (damaged,
locked, of another version, not writable), the answer is an empty index: everything is read from the runs themselves.
Each row carries a checksum of its content; a row that does not match it is ignored.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from gcdbench.core.errors import GCDBenchError
from gcdbench.core.places import cache_dir

VERSION = 5
"""Version of the tables below and of their texts; a file of another version is made again."""
FOLDER = "index"
LOCK_SECONDS = 3.0
PASSING = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
)
"""Errors that are not the file's fault: it can be written another time."""
TABLES = """
CREATE TABLE settings (digest TEXT PRIMARY KEY, identity TEXT NOT NULL, seal BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE runs (
    name TEXT PRIMARY KEY, stamp BLOB NOT NULL, digest TEXT NOT NULL, settings TEXT NOT NULL, head TEXT NOT NULL,
    scored BLOB NOT NULL, seal BLOB NOT NULL
) WITHOUT ROWID;
"""


class Row(NamedTuple):
    """One run: its name below the store, what its files looked like, their digest, and what was read from them."""

    name: str
    stamp: bytes
    digest: str
    settings: str
    head: str
    scored: bytes


class IndexFile:
    """The index of one store."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    @classmethod
    def of(cls, runs: Path) -> IndexFile:
        """The index of the store ``runs``."""
        name = hashlib.sha256(os.path.realpath(runs).encode(errors="surrogateescape")).hexdigest()[:32]
        try:
            return cls(cache_dir() / FOLDER / f"{name}.sqlite")
        except GCDBenchError:  # no usable cache
            return cls(None)

    def read(self) -> tuple[dict[str, Row], dict[str, str]]:
        """Rows by name, and identities by the digest of their settings; both empty where there is no index."""
        if self.path is None or not self.path.is_file():
            return {}, {}
        try:
            with self._open(self.path) as file:
                if file.execute("PRAGMA user_version").fetchone() != (VERSION,):
                    return {}, {}
                settings = {
                    key: text
                    for key, text, seal in file.execute("SELECT digest, identity, seal FROM settings")
                    if seal == _seal(f"{key}\0{text}".encode())
                }
                rows = {
                    found[0]: Row._make(found[:-1])
                    for found in file.execute("SELECT * FROM runs")
                    if found[-1] == _seal_row(*found[:-1])
                }
        except (sqlite3.Error, OSError, TypeError, AttributeError):  # TypeError: a value of another type than ours
            return {}, {}
        return rows, settings

    def write(self, rows: Sequence[Row], settings: Mapping[str, str], *, gone: Iterable[str]) -> None:
        """Add or replace rows and remove those of runs that are gone; nothing happens where that is not possible."""
        gone = list(gone)
        if self.path is None or not (rows or gone):
            return
        with suppress(sqlite3.Error, OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            for _ in range(2):
                try:
                    with self._open(self.path) as file:
                        self._write(file, rows, settings, gone)
                    return
                except sqlite3.DatabaseError as error:
                    if getattr(error, "sqlite_errorcode", 0) & 0xFF in PASSING:
                        return
                    self.path.unlink(missing_ok=True)  # damaged, or no index at all

    @staticmethod
    def _write(file: sqlite3.Connection, rows: Sequence[Row], settings: Mapping[str, str], gone: Sequence[str]) -> None:
        file.execute("BEGIN IMMEDIATE")
        if file.execute("PRAGMA user_version").fetchone() != (VERSION,):
            for (table,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                file.execute(f'DROP TABLE "{table}"')
            for statement in filter(str.strip, TABLES.split(";")):
                file.execute(statement)
            file.execute(f"PRAGMA user_version = {VERSION}")
        used = {row.settings for row in rows}
        file.executemany(
            "INSERT OR REPLACE INTO settings VALUES (?, ?, ?)",
            ((key, text, _seal(f"{key}\0{text}".encode())) for key, text in settings.items() if key in used),
        )
        file.executemany(
            "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?)",
            ((*row, _seal_row(*row)) for row in rows),
        )
        file.executemany("DELETE FROM runs WHERE name = ?", ((name,) for name in gone))
        file.execute("COMMIT")

    @staticmethod
    @contextmanager
    def _open(path: Path) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(path, timeout=LOCK_SECONDS, isolation_level=None)) as file:
            # Lost with the power, an index is made again; a damaged row does not match its seal.
            file.execute("PRAGMA synchronous = OFF")
            yield file


def _seal_row(name: str, stamp: bytes, digest: str, settings: str, head: str, scored: bytes) -> bytes:
    return _seal(f"{name}\0{digest}\0{settings}\0{head}\0".encode() + stamp + scored)


def _seal(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()
