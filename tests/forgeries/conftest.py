from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from forgeries.worlds import MAKERS


@pytest.fixture(scope="session")
def honest(tmp_path_factory) -> Callable[[str], Path]:
    """A finished run by the name of its world, made when it is first asked for."""
    made: dict[str, Path] = {}

    def find(world: str) -> Path:
        if world not in made:
            made[world] = MAKERS[world](tmp_path_factory.mktemp(world.replace(" ", "_")))
        return made[world]

    return find


@pytest.fixture
def copied(honest, tmp_path) -> Callable[[str], Path]:
    """A copy of a run that may be forged; what lies next to it stays where it is."""
    return lambda world: Path(shutil.copytree(honest(world), tmp_path / "run"))
