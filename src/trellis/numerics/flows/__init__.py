"""Flows on the part of their tree that was measured."""
