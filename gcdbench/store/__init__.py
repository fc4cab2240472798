"""Run directories: layout, atomic writes, locks, status, and an index that can be deleted at any time."""
