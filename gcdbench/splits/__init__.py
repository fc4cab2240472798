"""Which images are labelled, unlabelled or kept for testing: protocol, manifest, split files."""
