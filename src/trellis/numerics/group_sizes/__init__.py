"""Kernels for tables of group sizes: exact whole-number optimum, isotonic and joint regression."""
