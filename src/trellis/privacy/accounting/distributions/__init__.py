"""Distributions of privacy losses: on lattices, exact or rounded in one direction, with bounds."""
