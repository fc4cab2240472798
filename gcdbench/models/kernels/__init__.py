"""Small C kernels for what torch's operators do slowly on a CPU; everything works without them."""
