"""DuckDB as the engine that reads and tabulates; its dialect is used nowhere else."""
