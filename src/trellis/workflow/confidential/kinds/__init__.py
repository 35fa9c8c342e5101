"""The confidential half of each kind of release."""
