"""The designs of plans: one file per kind of release."""
