"""From public facts to a plan; counts are never seen here."""
