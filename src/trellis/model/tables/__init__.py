"""Cells: schema, queries, rules, bounds, sparse counts."""
