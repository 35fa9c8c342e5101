"""The forms on disk of public data: Parquet for arrays, JSON for the rest."""
