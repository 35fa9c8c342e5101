"""What can be computed ahead for each kind of release that has an outlook."""
