"""Whether public bounds can be kept together."""
