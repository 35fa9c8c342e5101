"""Compiled kernels and recursions over arrays; no files, no randomness, no plans."""
