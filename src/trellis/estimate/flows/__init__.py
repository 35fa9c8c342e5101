"""Whole, non-negative flows that add up, made level by level on the nodes that are left."""
