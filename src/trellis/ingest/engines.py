"""Which engine reads: DuckDB, unless another is chosen here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

from trellis.ingest.duckdb.reader import open_with_duckdb
from trellis.ingest.reader import Engine, Reader, Source

_DUCKDB: Engine = open_with_duckdb
_engine: ContextVar[Engine] = ContextVar("engine", default=_DUCKDB)


@contextmanager
def reading_with(engine: Engine) -> Iterator[None]:
    """Within the block, sources are opened by this engine."""
    token = _engine.set(engine)
    try:
        yield
    finally:
        _engine.reset(token)


def open_source(source: Source, *, confidential: bool = False) -> AbstractContextManager[Reader]:
    """Open a file or frame."""
    return _engine.get()(source, confidential=confidential)
