"""Noise that is not yet published is its owner's alone: a run that breaks off draws it again."""

import os
import shutil
import stat
from pathlib import Path

import pytest

import flow_worlds
import size_worlds
import trellis
from histogram_release_worlds import write_histogram_world
from trellis.storage import atomic
from trellis.workflow.confidential import measuring as confidential_half
from worlds import write_world


def counts(folder: Path) -> None:
    trellis.run(trellis.Spec.load(write_world(folder)), folder / "run")


def histogram(folder: Path) -> None:
    trellis.run(trellis.Spec.load(write_histogram_world(folder)), folder / "run")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    "release", [counts, histogram, flow_worlds.release_into, size_worlds.release_into]
)
def test_others_cannot_look_at_noise_before_it_is_published(tmp_path, monkeypatch, release):
    seen = []
    monkeypatch.setattr(
        confidential_half, "_write_noisy", watching(confidential_half._write_noisy, seen)
    )
    umask = os.umask(0o022)
    try:
        release(tmp_path)
    finally:
        os.umask(umask)
    assert seen == [(0o700, True)]
    assert mode(tmp_path / "run") == 0o755
    assert mode(tmp_path / "run" / "measurements") == 0o755
    assert mode(tmp_path / "run" / "release") == 0o755
    assert mode(tmp_path / "run" / "privacy.json") == 0o644


def watching(write, seen: list):
    def watched(partial, *rest):
        before = mode(partial)
        write(partial, *rest)
        seen.append((before, mode(partial) == before))

    return watched


def test_what_a_crash_left_is_published_with_the_usual_rights(tmp_path, monkeypatch):
    """Between the ledger's entry and the name, a run may die."""

    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(confidential_half, "publish", die)
        with pytest.raises(KeyboardInterrupt):
            counts(tmp_path)
    (partial,) = (tmp_path / "run").glob(".measurements.*.partial")
    assert mode(partial) == 0o700
    umask = os.umask(0o027)
    try:
        counts(tmp_path)
    finally:
        os.umask(umask)
    assert mode(tmp_path / "run" / "measurements") == 0o750


def test_rights_beyond_those_of_users_are_kept(tmp_path):
    """A folder whose files belong to its group passes that on."""
    tmp_path.chmod(0o2775)
    with atomic.new_folder(tmp_path / "new") as partial:
        inherited = partial.stat().st_mode & stat.S_ISGID
        assert mode(partial) & 0o777 == 0o700
    assert (tmp_path / "new").stat().st_mode & stat.S_ISGID == inherited
    shutil.rmtree(tmp_path / "new")
