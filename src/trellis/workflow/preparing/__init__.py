"""From a spec to its plan: reads public files only."""
