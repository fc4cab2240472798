"""Archives of runs: one zip with a manifest, packed on one machine and merged on another."""
