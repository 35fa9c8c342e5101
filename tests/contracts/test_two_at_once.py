"""Privacy contract: of processes that compete, each gets what it paid for or one clear line."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path

import pytest

from contracts.drivers import assert_one_line, printed_by
from contracts.killed_runs import state
from trellis.errors import RunFolderError
from trellis.privacy.ledger import Ledger
from trellis.storage.folder_lock import held
from trellis.verify import verify_run
from worlds import write_world

ROUNDS = 2


def is_sound(run: Path) -> bool:
    return all(finding.holds for finding in verify_run(run))


def charges(folder: Path) -> int:
    return len(Ledger(folder / "ledger.sqlite").entries("towns"))


def race(tmp_path: Path, first_out: str, second_out: str, **world):
    """The same spec twice at the same moment, in each of some fresh worlds."""
    for number in range(ROUNDS):
        write_world(tmp_path / str(number), **world)
    spec, folder = f"{tmp_path}/{{round}}/spec.yaml", f"{tmp_path}/{{round}}"
    commands = [
        "run", spec, "--out", f"{folder}/{first_out}",
        "--", "run", spec, "--out", f"{folder}/{second_out}",
    ]  # fmt: skip
    for number, ends in enumerate(printed_by("racing_runs", ROUNDS, *commands)):
        yield tmp_path / str(number), ends


def test_two_runs_on_one_ledger_are_both_charged(tmp_path):
    for folder, ends in race(tmp_path, "a", "b"):
        assert [code for code, _ in ends] == [0, 0], ends
        assert charges(folder) == 2
        assert is_sound(folder / "a")
        assert is_sound(folder / "b")
        names = [json.loads((folder / run / "run.json").read_text()) for run in "ab"]
        assert names[0]["run_id"] != names[1]["run_id"]
        assert (folder / "a/measurements/level=town").is_dir()


def test_a_limit_for_one_lets_one_of_two_through(tmp_path):
    for folder, ends in race(tmp_path, "a", "b", ledger__limit={"rho": "3/2"}):
        assert sorted(code for code, _ in ends) == [0, 2], ends
        [words] = [words for code, words in ends if code == 2]
        assert_one_line(words)
        assert "only 1/2 of its limit 3/2" in words
        assert charges(folder) == 1
        [kept] = [run for run in ("a", "b") if (folder / run).exists()]
        assert is_sound(folder / kept)
        assert not list(folder.glob(".*"))


def test_two_runs_in_one_folder_make_one_release(tmp_path):
    for folder, ends in race(tmp_path, "out", "out"):
        assert 0 in [code for code, _ in ends], ends
        for code, words in ends:
            if code:
                assert code == 2
                assert_one_line(words)
                assert "Another process is at work on" in words
        assert charges(folder) == 1
        assert is_sound(folder / "out")
        assert not state(folder / "spec.yaml")["leftovers"]
        assert not list(folder.glob(".*"))


# -- the hold itself ------------------------------------------------------------------------------


def test_a_folder_is_held_once_and_freed(tmp_path):
    path = tmp_path / "new" / "runs" / "x"
    with held(path):
        with pytest.raises(RunFolderError, match="Another process is at work"), held(path):
            pass
        with held(path.with_name("y")):  # a neighbour is free
            pass
    assert not (tmp_path / "new").exists()  # nothing came of it
    with held(path):
        path.mkdir()
    assert [p.name for p in path.parent.iterdir()] == ["x"]


def test_a_file_left_by_a_process_that_died_stops_no_one(tmp_path):
    (tmp_path / ".x.lock").touch()
    with held(tmp_path / "x"):
        pass


def test_a_lock_whose_file_was_removed_meanwhile_does_not_count(tmp_path, monkeypatch):
    """The last holder removes the file after we opened it and before we lock it."""
    real, calls = fcntl.flock, []

    def slow(descriptor, how):
        if not calls:
            (tmp_path / ".x.lock").unlink()
        calls.append(descriptor)
        real(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", slow)
    with held(tmp_path / "x"):
        assert len(calls) == 2
        assert (tmp_path / ".x.lock").exists()
