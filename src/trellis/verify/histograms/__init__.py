"""Promises of histograms."""
