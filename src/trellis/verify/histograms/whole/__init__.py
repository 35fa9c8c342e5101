"""Whole counts of histograms against the best fit to what was measured, family by family."""
