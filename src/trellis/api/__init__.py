"""What a user holds in Python: specs, plans, runs and releases as objects."""
