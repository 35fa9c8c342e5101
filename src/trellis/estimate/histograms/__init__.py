"""From measured query groups to histograms of whole numbers that add up."""
