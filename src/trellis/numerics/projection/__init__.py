"""Whole children nearest to their estimates, family by family."""
