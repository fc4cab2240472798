"""Algorithms that methods share, on plain arrays: k-means, mean-shift, Sinkhorn, communities, estimating K."""
