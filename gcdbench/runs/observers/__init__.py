"""Observers watch a run and tell others about it; they change nothing in it."""
