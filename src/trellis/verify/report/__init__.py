"""The report of a release, made again from its plan and its tables."""
