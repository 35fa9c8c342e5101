"""Edit rules of a family, kept by exchanging whole units."""
