"""What the compiler may change about floating-point sums here."""

REORDER = {"reassoc", "contract", "nsz"}
"""Sums may be reordered, so that they run on vector units. Infinities keep their meaning: they
mark children that may hold nothing of a cell."""
