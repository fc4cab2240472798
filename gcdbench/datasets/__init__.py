"""What is known of a dataset and where its images come from: cards, catalogue, sources, fetching, integrity."""
