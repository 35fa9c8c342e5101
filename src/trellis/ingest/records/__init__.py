"""Tabulates confidential records. What comes back is true counts."""
