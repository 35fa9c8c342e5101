"""The public half of each kind of release."""
