"""Counts: tables, areas of interest and spines, and what follows from the measurements."""
