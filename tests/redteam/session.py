"""A session: attacks in turn until the time is up, then the defects that must be found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import cycle
from random import Random
from time import monotonic

from redteam.attack import Attack, attempt
from redteam.attacks import ATTACKS
from redteam.mutations import MUTATIONS, Mutation
from redteam.report import Report

Say = Callable[[str], None]

FOR_MUTATIONS = 0.4
"""The part of the time that is kept for them."""
FEWEST = 40
"""Trials in which a defect must be found, however little time is left; mostly one to five do."""


def new_seed(chance: Random) -> int:
    return chance.randrange(10**9)


def attack_until(
    end: float, seed: int, report: Report, attacks: Iterable[Attack], say: Say
) -> None:
    """The attack that had the least of its share of time goes next, on the kind tried least.

    A trial's seed follows from its attack, kind and number, so a faster machine tries more of the
    same list, not another one.
    """
    several = list(attacks)
    spent = dict.fromkeys((a.name for a in several), 0.0)
    times = {(a.name, kind): 0 for a in several for kind in a.kinds}
    while monotonic() < end or 0 in times.values():
        attack = min(several, key=lambda a: (
            min(times[a.name, k] for k in a.kinds) > 0, spent[a.name] / a.weight))  # fmt: skip
        kind = min(attack.kinds, key=lambda k: times[attack.name, k])
        own = new_seed(Random(f"{seed}:{attack.name}:{kind}:{times[attack.name, kind]}"))
        seconds = one_trial(attack, kind, own, report, say)
        spent[attack.name] += seconds
        times[attack.name, kind] += 1


def one_trial(attack: Attack, kind: str, seed: int, report: Report, say: Say) -> float:
    begun = monotonic()
    outcome = attempt(attack, kind, seed)
    seconds = monotonic() - begun
    report.add(attack.name, kind, seed, outcome, seconds)
    for what in outcome.findings:
        say(f"FOUND {attack.name}:{kind}:{seed} {what}")
    return seconds


def try_mutations(
    end: float, chance: Random, report: Report, say: Say,
    mutations: tuple[Mutation, ...] = MUTATIONS,
) -> None:  # fmt: skip
    """Each gets its part of the time that is left."""
    for position, mutation in enumerate(mutations):
        share = (end - monotonic()) / (len(mutations) - position)
        line = _sought(mutation, monotonic() + share, chance)
        report.mutations.append(line)
        report.missed += "MISSED" in line
        say(line)


def _sought(mutation: Mutation, end: float, chance: Random) -> str:
    """Found is what the same trial does not find without the defect."""
    begun = monotonic()
    for trials, (name, kind) in enumerate(cycle(mutation.attacks)):
        if trials >= FEWEST and monotonic() > end:
            break
        seed = new_seed(chance)
        with mutation.applied():
            outcome = attempt(ATTACKS[name], kind, seed)
        if outcome.findings and not attempt(ATTACKS[name], kind, seed).findings:
            seconds = monotonic() - begun
            where = f"{name}:{kind}:{seed}, trial {trials + 1}, {seconds:.0f} s"
            return f"  found   {mutation.name} ({where}): {outcome.findings[0][:100]}"
    return f"  MISSED  {mutation.name} ({trials} trials)"
