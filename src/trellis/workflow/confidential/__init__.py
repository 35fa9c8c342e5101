"""The half that touches records: tabulate, charge, draw."""
