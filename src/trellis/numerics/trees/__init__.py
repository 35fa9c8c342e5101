"""Trees of totals: best linear unbiased estimates, areas of interest, groups of siblings."""
