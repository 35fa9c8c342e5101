"""Run folders that an earlier version wrote, kept as an archive: one of each kind.

Format 1 was written by commit 32a87e7 from the worlds of `tests/*_worlds.py`.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

KINDS = ("counts", "flows", "group_sizes", "histogram", "used_histogram")
"""Counts have a spine and areas of interest, histograms constraints and edit rules."""


def unpack(kind: str, folder: Path, number: int = 1) -> Path:
    """The run folder of one kind, in a folder that is there."""
    archive = Path(__file__).parent / "run_folders" / f"format-{number}.tar.xz"
    with tarfile.open(archive) as file:
        inside = [item for item in file if item.name.startswith(f"./{kind}/")]
        file.extractall(folder, inside, filter="data")
    return folder / kind
