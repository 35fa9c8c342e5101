"""Every reader, for tests of the contract. A new one earns its place here."""

from oracles.plain_reader import open_plainly
from trellis.ingest.duckdb.reader import open_with_duckdb

READERS = {"duckdb": open_with_duckdb, "plain": open_plainly}
