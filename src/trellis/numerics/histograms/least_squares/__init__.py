"""Real children of a family, by least squares."""
