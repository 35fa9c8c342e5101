"""Areas: hierarchies, spines, categories of areas, the tree of flows."""
