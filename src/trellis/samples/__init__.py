"""Made-up data with their specs, and specs to start from."""
