"""Promises of flows."""
