"""The kernels of each primitive, and the table that maps rows to them."""
