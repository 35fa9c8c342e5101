"""Compares a release with the truth: one command, and its result is confidential."""
