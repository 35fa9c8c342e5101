"""Differentially private release of hierarchical data."""

__version__ = "0.1.0"
