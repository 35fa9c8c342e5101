"""Published tables, one file per form."""
