"""What a release says about itself, word for word."""
