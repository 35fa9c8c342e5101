"""What can be said about a plan before anything is spent, from public facts alone."""
