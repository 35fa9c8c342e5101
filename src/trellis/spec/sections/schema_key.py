"""The key `schema`, which pydantic also has as a method."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def with_schema_key() -> Iterator[None]:
    """Declare a model with a field `schema`: the method of that name is not needed, the key is."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", 'Field name "schema"')
        yield
