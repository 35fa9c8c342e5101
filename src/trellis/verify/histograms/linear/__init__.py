"""Best linear unbiased estimates of histograms, made again from the measurements."""
