"""The only place that wires the stages together."""
