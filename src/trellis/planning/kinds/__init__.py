"""The plan of each kind of release: shares, noise, prices."""
