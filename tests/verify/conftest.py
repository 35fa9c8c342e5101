"""Fixtures of tests that forge finished runs."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def copied(finished, tmp_path):
    """A copy of one of the module's finished runs, by its name, to forge."""
    return lambda name: Path(shutil.copytree(finished[name], tmp_path / "run"))
