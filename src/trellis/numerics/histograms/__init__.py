"""Compiled solvers for families of histograms, and least squares over a tree of them."""
