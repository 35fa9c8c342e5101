"""Reads public hierarchies and tabulates confidential records."""
