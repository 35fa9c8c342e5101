"""Compiled kernels never outlive the sources they were made from."""

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
    assert compiled.are_kernels_cached()


@pytest.mark.parametrize("kernel", ["chebyshev", "family_solver"])
def test_any_kind_of_release_compiles_some(package, kernel):
    cache = package / "__pycache__"
    (cache / "tree_gls.kernel-1.nbi").unlink()
    assert not compiled.are_kernels_cached()
    (cache / f"{kernel}.kernel-1.nbi").touch()
    assert compiled.are_kernels_cached()


def test_any_changed_source_empties_the_cache(package):
    (package / "ties.py").write_text("a = 2")
    compiled.drop_stale_kernels()
    assert not compiled.are_kernels_cached()
    assert not list(package.rglob("*.nbc"))
