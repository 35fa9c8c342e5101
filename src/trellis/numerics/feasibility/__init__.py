"""Which bounds can be kept together, and whole counts that keep them."""
