"""What explains the tables: guides, guarantees, packages, manifest."""
