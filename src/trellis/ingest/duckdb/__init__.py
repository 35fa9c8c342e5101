"""DuckDB as the engine that reads and tabulates; its dialect stands here alone."""
