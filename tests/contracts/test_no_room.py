"""Full disks and folders that cannot be written: one line, one charge, and the run goes on."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

from contracts.drivers import assert_one_line, printed_by
from trellis.privacy.ledger import Ledger
from trellis.verify import verify_run
from worlds import write_world

OWN_NAME_SPACE = ("unshare", "--user", "--map-root-user", "--mount")


def assert_recovered(trials: list[dict]) -> None:
    for trial in trials:
        if trial["code"]:
            assert trial["code"] == 2, trial
            assert_one_line(trial["words"])
            assert "could not be written (" in trial["words"] or "no space left" in trial["words"]
        assert trial["seen"]["charges"] <= 1
        assert not trial["seen"]["leftovers"]  # a run that fails cleans up, unlike one that is shot
        assert (trial["resumed"], trial["then_words"], trial["verified"]) == (0, "", 0), trial
        assert trial["then"]["charges"] == 1
        kept = {trial["seen"]["published"], *trial["seen"]["settled"]} - {None}
        assert kept <= {trial["then"]["published"]}


def on_small_disks(folder, sizes) -> list[dict]:
    probe = [*OWN_NAME_SPACE, "mount", "-t", "tmpfs", "none", folder]
    try:
        allowed = subprocess.run(probe, capture_output=True).returncode == 0
    except FileNotFoundError:
        allowed = False
    if not allowed:
        pytest.skip("this system does not let users mount a small disk")
    return printed_by("short_of_room", folder, "disk", *sizes, prefix=OWN_NAME_SPACE)


def test_a_full_disk(tmp_path):
    trials = on_small_disks(tmp_path, [20_000, 140_000])
    assert_recovered(trials)
    assert {trial["code"] for trial in trials} == {2}
    assert [trial["seen"]["charges"] for trial in trials] == [0, 1]


@pytest.mark.slow
def test_disks_of_many_sizes(tmp_path):
    trials = on_small_disks(tmp_path, range(0, 240_000, 12_288))
    assert_recovered(trials)
    assert {trial["code"] for trial in trials} == {0, 2}
    assert {trial["seen"]["charges"] for trial in trials} == {0, 1}


@pytest.mark.slow
def test_files_that_may_not_grow(tmp_path):
    trials = printed_by("short_of_room", tmp_path, "file", *range(1024, 64_000, 6000))
    assert_recovered(trials)


# -- folders that cannot be written ----------------------------------------------------------------


def obey_permissions() -> None:
    """Root may write everywhere; a process without that right may not, from the next program on."""
    if os.getuid() == 0:
        drop_from_bounding_set, override, read_search = 24, 1, 2
        for right in (override, read_search):
            assert ctypes.CDLL(None).prctl(drop_from_bounding_set, right, 0, 0, 0) == 0


def trellis(*arguments: object) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", "from trellis.cli import main; main()", "-q", *map(str, arguments)],
        capture_output=True, text=True, preexec_fn=obey_permissions,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.fixture
def locked():
    """Takes away the right to write, until the test ends."""
    paths = []

    def lock(path):
        paths.append((path, path.stat().st_mode))
        path.chmod(0o555 if path.is_dir() else 0o444)

    yield lock
    for path, mode in paths:
        path.chmod(mode)


def test_a_folder_for_runs_that_is_read_only_costs_nothing(tmp_path, locked):
    spec = write_world(tmp_path)
    (tmp_path / "runs").mkdir()
    locked(tmp_path / "runs")
    code, words = trellis("run", spec)
    assert code == 2
    assert_one_line(words)
    assert "could not be written (Permission denied)" in words
    assert Ledger(tmp_path / "ledger.sqlite").entries("towns") == []


def test_a_ledger_that_is_read_only_costs_nothing(tmp_path, locked):
    spec = write_world(tmp_path)
    Ledger(tmp_path / "ledger.sqlite").id()
    locked(tmp_path / "ledger.sqlite")
    code, words = trellis("run", spec)
    assert code == 2
    assert_one_line(words)
    assert "cannot be written: permission denied" in words
    assert not (tmp_path / "runs").exists()


def test_a_folder_of_the_ledger_that_is_read_only_is_named_as_such(tmp_path, locked):
    spec = write_world(tmp_path, ledger__path="safe/ledger.sqlite")
    (tmp_path / "safe").mkdir()
    locked(tmp_path / "safe")
    code, words = trellis("check", spec)
    assert code == 2
    assert_one_line(words)
    assert "cannot be written: permission denied" in words
    assert "exists" not in words
    assert not (tmp_path / "runs").exists()


def test_a_run_that_becomes_read_only_goes_on_when_it_may(tmp_path, locked):
    spec = write_world(tmp_path)
    assert trellis("measure", spec)[0] == 0
    run = tmp_path / "runs" / "towns"
    mode = run.stat().st_mode
    locked(run)
    code, words = trellis("run", spec)
    assert code == 2
    assert_one_line(words)
    assert "could not be written (Permission denied)" in words
    run.chmod(mode)
    assert trellis("run", spec) == (0, "")
    assert len(Ledger(tmp_path / "ledger.sqlite").entries("towns")) == 1
    # Finished, it needs no writing.
    for path in (run, run.parent):
        locked(path)
    assert trellis("run", spec) == (0, "")
    assert all(finding.holds for finding in verify_run(run))
