"""Errors that are known before any count is seen."""
