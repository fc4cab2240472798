"""A page to decide from: what was discovered, what it resembles, and what may not belong where it was put."""
