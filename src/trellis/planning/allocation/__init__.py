"""Shares and budgets that are computed: least errors, least budgets."""
