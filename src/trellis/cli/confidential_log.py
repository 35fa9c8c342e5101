"""The option that points a confidential log somewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from trellis.errors import RunFolderError

ConfidentialLog = Annotated[
    Path | None,
    typer.Option(
        "--confidential-log",
        metavar="FILE",
        help="A file outside of run folders that says what is wrong with records.",
    ),
]


@contextmanager
def logging_confidentially(path: Path | None) -> Iterator[None]:
    """Within the block, faults of the records are described in this file."""
    from trellis.ingest.confidential_log import confidential_log

    if path is not None and any((p / "run.json").exists() for p in path.resolve().parents):
        raise RunFolderError(
            f"{path} lies in a run folder, which may be published. Choose another."
        )
    with confidential_log(path):
        yield
