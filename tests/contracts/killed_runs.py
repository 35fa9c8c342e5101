"""Kills real processes in the middle of a release, lets them go on, and says what it saw.

Run as a program of its own, in a process without threads, so that it can fork: each attempt at a
release is a child that is killed (SIGKILL) just before its n-th call, where calls are those made
by this package, of Python or C functions alike: `os.rename`, `fsync` and each SQL statement of the
ledger among them. Another child resumes. Prints one JSON object per trial.

    python killed_runs.py WORLD FOLDER SEED BEFORE DURING AFTER [MUTATION]
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import histogram_worlds
import kinds
import trellis
from histogram_release_worlds import write_histogram_world
from kinds.world import RHO
from trellis.estimate.histograms.estimators import estimate_topdown
from trellis.estimate.methods import estimate
from trellis.model.plans.statement import attacks_in_words
from trellis.privacy.ledger import Ledger
from trellis.verify import verify_run
from trellis.workflow import running
from trellis.workflow.confidential import measuring as confidential_half
from trellis.workflow.confidential.measuring import folder_digest
from trellis.workflow.public.run_folder import RunFolder
from worlds import TREE, noisy, plan_for

PACKAGE = Path(trellis.__file__).parent
ACCOUNTING = str(PACKAGE / "privacy" / "accounting")  # pure mathematics, tens of thousands of calls
POISON = b"never to be read"


def write_used_world(folder: Path) -> Path:
    """Histograms that are measured level by level, where the levels above leave anyone."""
    output = {"tables": {"default": ["total"]}, "measurements": "used"}
    return write_histogram_world(folder, estimate={"method": "topdown"}, output=output)


WORLDS: dict[str, Callable[[Path], Path]] = {
    **{kind: partial(world.write, **RHO) for kind, world in kinds.WORLDS.items()},
    "used": write_used_world,
}


def release(spec: Path) -> None:
    trellis.run(trellis.Spec.load(spec), spec.parent / "out")


class Calls:
    """Counts calls; kills the process just before call number `last`."""

    def __init__(self, last: int | None = None) -> None:
        self.count, self.last = 0, last
        self.phases: dict[str, int] = {}

    def __call__(self, frame, event, _argument) -> None:
        file = frame.f_code.co_filename
        if not file.startswith(str(PACKAGE)) or file.startswith(ACCOUNTING):
            return
        if event == "return" and frame.f_code is confidential_half._draw.__code__:
            self.phases["after"] = self.count
        if event not in ("call", "c_call"):
            return
        self.count += 1
        if event == "call":
            if frame.f_code is confidential_half.measure_into.__code__:
                self.phases["before"] = self.count
            if frame.f_code is confidential_half._draw.__code__:
                self.phases["during"] = self.count
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


def in_child(work: Callable[[], None]) -> int:
    """Do something in a child process; returns how it ended, negative if by a signal."""
    sys.stdout.flush()
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        work()
        os._exit(0)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)


def warm_up(spec: Path) -> None:
    """Compile, and find what takes long, once for all children; without starting a thread."""
    plan = plan_for()
    estimate(noisy(plan, TREE, np.ones((TREE.size(TREE.leaf_level), 1), np.int64)), tie_seed=0)
    measured = [{"detailed": 1.0, "total": 0.0}, *[{"detailed": 1.0, "b": 1.0}] * 3]
    chance = np.random.default_rng(0)
    _, evidence = histogram_worlds.evidence(histogram_worlds.TREE, measured, chance)
    estimate_topdown(evidence, tie_seed=0, workers=1)
    assert in_child(lambda: release(spec)) == 0
    attacks_in_words(RunFolder(spec.parent / "out").plan())


def killed_at(spec: Path, call: int) -> int:
    def work() -> None:
        sys.setprofile(Calls(call))
        release(spec)

    return in_child(work)


def count_calls(spec: Path) -> dict[str, int]:
    """How many calls a release makes, and at which call its phases begin."""

    def work() -> None:
        calls = Calls()
        sys.setprofile(calls)
        release(spec)
        sys.setprofile(None)
        (spec.parent / "calls.json").write_text(json.dumps(calls.phases | {"end": calls.count}))

    assert in_child(work) == 0
    return json.loads((spec.parent / "calls.json").read_text())


def state(spec: Path) -> dict:
    """What the ledger and the folder say at this moment."""
    dataset = trellis.Spec.load(spec).dataset
    entries = Ledger(spec.parent / "ledger.sqlite").entries(dataset)
    folder = spec.parent / "out"
    measured = folder / "measurements"
    return {
        "charges": len(entries),
        "rho": str(sum(entry.guarantee.rho for entry in entries)),
        "tokens": [entry.token for entry in entries],
        "settled": [entry.digest for entry in entries if entry.is_settled],
        "published": folder_digest(measured) if measured.is_dir() else None,
        "unpublished": sorted(p.name for p in folder.glob(".measurements.*")),
        "leftovers": [str(p) for p in spec.parent.rglob(".*.partial*")],
    }


def poison_unsettled(spec: Path, seen: dict) -> None:
    """Spoil measurements that were not settled: whoever reads them is found out."""
    if not seen["settled"]:
        for name in seen["unpublished"]:
            for file in (spec.parent / "out" / name).rglob("*.parquet"):
                file.write_bytes(POISON)


def is_poisoned(spec: Path) -> bool:
    files = (spec.parent / "out" / "measurements").rglob("*.parquet")
    return any(POISON in file.read_bytes() for file in files)


def trial(spec: Path, call: int) -> dict:
    ended = killed_at(spec, call)
    seen = state(spec)
    poison_unsettled(spec, seen)
    resumed = in_child(lambda: resume(spec))
    return {
        "call": call, "ended": ended, "seen": seen, "resumed": resumed, "then": state(spec),
        "poisoned": is_poisoned(spec),
    }  # fmt: skip


def resume(spec: Path) -> None:
    """Go on with the release; it must keep every promise, and nothing be left beside it."""
    release(spec)
    assert all(finding.holds for finding in verify_run(spec.parent / "out"))


# -- mutations: each breaks one rule on purpose ----------------------------------------------------


def charge_after_drawing() -> None:
    """The charge is held back until the noise is on disk."""
    charge, claim, settle = Ledger.charge, Ledger.claim, Ledger.settle
    held: list[tuple] = []

    def claim_without_charge(self, run_id):
        from trellis.privacy.ledger import Claim

        _, (_, _, _, guarantee, *_) = held[-1]
        return Claim(run_id, "0" * 16, guarantee)

    def settle_and_charge(self, claimed, digest):
        ledger, arguments = held.pop()
        charge(ledger, *arguments)
        settle(self, claim(self, claimed.run_id), digest)

    Ledger.charge = lambda self, *arguments: held.append((self, arguments))
    Ledger.claim, Ledger.settle = claim_without_charge, settle_and_charge


def reuse_what_lies_there() -> None:
    """Measurements that no one settled are taken for complete."""
    real = confidential_half._was_settled

    def trusting(folder, identity, ledger):
        for left in folder.path.glob(".measurements.*"):
            left.rename(folder.measurements)
            return True
        return real(folder, identity, ledger)

    confidential_half._was_settled = trusting


def forget_the_run() -> None:
    """A run that was begun is thrown away and begun again."""
    real = running._measure

    def forgetful(folder, *rest):
        if not folder.is_measured:
            shutil.rmtree(folder.path, ignore_errors=True)
        real(folder, *rest)

    running._measure = forgetful


MUTATIONS = {f.__name__: f for f in (charge_after_drawing, reuse_what_lies_there, forget_the_run)}


def main(
    world: str, folder: Path, seed: int, numbers: dict[str, int], mutation: str | None = None
) -> None:
    if mutation:
        MUTATIONS[mutation]()
    write = WORLDS[world]
    warm_up(write(folder / "warm"))
    calls = count_calls(write(folder / "whole"))
    ends = dict(zip(("before", "during", "after"), ("during", "after", "end"), strict=True))
    chance = random.Random(seed)
    for phase, number in numbers.items():
        points = range(calls[phase], calls[ends[phase]] + 1)
        for call in chance.sample(points, number):
            place = folder / f"{phase}-{call}"
            print(json.dumps({"phase": phase} | trial(write(place), call)), flush=True)
            shutil.rmtree(place)


if __name__ == "__main__":
    world, place, seed, before, during, after, *mutation = sys.argv[1:]
    numbers = {"before": int(before), "during": int(during), "after": int(after)}
    main(world, Path(place), int(seed), numbers, *mutation)
