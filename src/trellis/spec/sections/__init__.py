"""Sections and values of a spec that several kinds of release share."""
