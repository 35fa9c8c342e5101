"""Where faults of the records are written down for their owner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trellis.errors import RunFolderError
from trellis.ingest import confidential_log as log_file


@contextmanager
def confidential_log(path: str | Path | None) -> Iterator[None]:
    """Within the block, write which records are at fault into this file.

    Messages never name records; this file does. It is confidential, readable by its owner alone,
    and refused inside a run folder.

    >>> with tr.confidential_log("faults.txt"):
    ...     plan = spec.check()
    """
    inside = () if path is None else Path(path).resolve().parents
    if any((folder / "run.json").exists() for folder in inside):
        raise RunFolderError(
            f"{path} lies in a run folder, which may be published. Choose another place."
        )
    with log_file.confidential_log(path):
        yield
