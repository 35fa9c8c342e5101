"""What spec.yaml asks for: queries, noise, prices and the plan that follows."""
