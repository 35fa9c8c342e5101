"""How a spec is read: YAML, gaps, old spellings, and what is said about mistakes."""
