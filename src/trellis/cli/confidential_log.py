"""The option that points a confidential log somewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

ConfidentialLog = Annotated[
    Path | None,
    typer.Option(
        "--confidential-log",
        metavar="FILE",
        help="A file, outside run folders, for faults found in records.",
    ),
]


@contextmanager
def logging_confidentially(path: Path | None) -> Iterator[None]:
    """Within the block, faults of the records are described in this file."""
    from trellis.api.logs import confidential_log

    with confidential_log(path):
        yield
