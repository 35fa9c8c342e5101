"""Whole children of a family, near real ones."""
