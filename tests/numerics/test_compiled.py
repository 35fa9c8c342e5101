"""Compiled kernels never outlive the sources they were made from."""

import subprocess
import sys

import pytest

from trellis.numerics import compiled


@pytest.fixture
def package(tmp_path, monkeypatch):
    cache = tmp_path / "__pycache__"
    cache.mkdir()
    (tmp_path / "ties.py").write_text("a = 1")
    monkeypatch.setattr(compiled, "_HERE", tmp_path)
    monkeypatch.setattr(compiled, "_STAMP", cache / "kernels.sha256")
    compiled.drop_stale_kernels()
    (cache / "tree_gls.kernel-1.nbi").touch()
    (cache / "tree_gls.kernel-1.nbc").touch()
    return tmp_path


def test_unchanged_sources_keep_their_kernels(package):
    compiled.drop_stale_kernels()
    assert list(package.rglob("*.nbi"))


def test_any_changed_source_empties_the_cache(package):
    (package / "ties.py").write_text("a = 2")
    compiled.drop_stale_kernels()
    assert not list(package.rglob("*.nb[ic]"))


COMPILES = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from trellis.numerics.compiled import tell_when_compiling
tell_when_compiling(lambda: print("compiling"))
import small
print(small.one(1), small.two(1.0))
"""
SMALL = """
from numba import njit

@njit(cache=True)
def one(x):
    return x + 1

@njit(cache=True)
def two(x):
    return x + 2
"""


def test_compiling_is_told_once_and_loading_is_not(tmp_path):
    (tmp_path / "small.py").write_text(SMALL)
    for told in ("compiling\n", ""):
        done = subprocess.run(
            [sys.executable, "-c", COMPILES, tmp_path], capture_output=True, text=True, check=True
        )
        assert done.stdout == f"{told}2 3.0\n"
