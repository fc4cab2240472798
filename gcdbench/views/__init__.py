"""Augmented views: a function of (seed, step, image), and the bank of stored prefix outputs."""
