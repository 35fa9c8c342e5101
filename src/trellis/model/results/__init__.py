"""Measurements, estimates, and facts that margins use."""
