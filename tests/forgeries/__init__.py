"""What a forger can do to a run folder, by name, and who notices.

`catalogue` lists the forgeries; `docs/trust.md` lists the same names. Every one is consistent: all
hashes are made good, and what the package itself can make again is made again.
"""
