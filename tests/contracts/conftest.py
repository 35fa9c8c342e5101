"""The search for planted values, for every kind of release."""

from contracts.test_canary import invoke

__all__ = ["invoke"]
