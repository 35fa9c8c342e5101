"""The command line, one file per command."""

from trellis.cli.app import main

__all__ = ["main"]
