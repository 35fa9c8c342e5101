"""What the spec of each kind asks for: the keys of its plan."""
