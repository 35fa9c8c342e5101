"""From the spec of each kind of release to its plan."""
