"""The list of all files of a release with their hashes."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

_PACKAGES = ("numpy", "scipy", "numba", "pyarrow", "duckdb", "cryptography")


def manifest(
    folder: Path, files: Iterable[Path], release: str, run_id: str, seconds: Mapping[str, float]
) -> dict[str, Any]:
    """Hashes of public files, versions, and durations of the stages after measuring."""
    return {
        "release": release,
        "run_id": run_id,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "trellis": version("trellis-dp"),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in _PACKAGES},
        "seconds": {stage: round(time, 3) for stage, time in seconds.items()},
        "sha256": {str(f.relative_to(folder).as_posix()): file_hash(f) for f in sorted(files)},
    }


def file_hash(path: Path) -> str:
    with path.open("rb") as file:
        digest = sha256()
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
