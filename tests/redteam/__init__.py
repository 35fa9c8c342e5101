"""A standing red team: random releases of every kind, attacked through the public interface.

    make redteam [MINUTES=120] [SEED=1] [ONLY=sensitivity:flows:4711]

See `docs/redteam.md`. Worlds are drawn from a seed; noise stays the operating system's.
"""
