"""True counts. Nothing after the measurement step may import this package."""
