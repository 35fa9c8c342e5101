"""Group sizes: tables and statistics, and what follows from the measurements."""
