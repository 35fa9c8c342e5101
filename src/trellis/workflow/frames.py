"""What is handed over in memory, in place of the files that a spec names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Frames:
    """Arrow, Polars or pandas frames; `areas` holds one for each category of areas."""

    records: Any = None
    hierarchy: Any = None
    register: Any = None
    areas: Mapping[str, Any] | None = None
    destinations: Any = None


NO_FRAMES = Frames()
