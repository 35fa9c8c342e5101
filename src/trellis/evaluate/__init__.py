"""What a release looks like to a reader: pictures and the report, from public facts only."""
