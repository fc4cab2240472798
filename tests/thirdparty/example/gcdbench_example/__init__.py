"""A third party's package: one method, one dataset, one metric."""
