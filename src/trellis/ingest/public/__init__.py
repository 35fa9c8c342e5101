"""Reads public tables: hierarchies, areas, registers, priors, bounds."""
