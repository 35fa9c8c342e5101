"""The algebra of weighted sums of marginal queries."""
