"""`python -m redteam`: attacks for so many minutes; exit code 1 if anything was found."""

from __future__ import annotations

import argparse
import secrets
import sys
import warnings
from random import Random
from time import monotonic

from redteam.attacks import ATTACKS
from redteam.report import Report
from redteam.session import FOR_MUTATIONS, attack_until, one_trial, try_mutations


def main() -> int:
    given = _arguments()
    warnings.simplefilter("ignore")
    report = Report()
    if given.only:
        attack, kind, seed = given.only.split(":")
        one_trial(ATTACKS[attack], kind, int(seed), report, _say)
        print(report.text())
        return 0 if report.is_clean else 1
    _say(f"make redteam MINUTES={given.minutes:g} SEED={given.seed}")
    for attack in ATTACKS.values():
        _say(f"  {attack.name:12} {attack.about}")
    begun = monotonic()
    whole = 60 * given.minutes
    attack_until(begun + whole * (1 - FOR_MUTATIONS), given.seed, report, ATTACKS.values(), _say)
    try_mutations(begun + whole, Random(given.seed), report, _say)
    print(f"\n{report.text()}\n{monotonic() - begun:.0f} s, seed {given.seed}", flush=True)
    return 0 if report.is_clean else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="redteam", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=None, help="drawn, and printed, if not given")
    parser.add_argument("--only", help="one trial again: attack:kind:seed")
    given = parser.parse_args()
    given.seed = secrets.randbelow(10**9) if given.seed is None else given.seed
    return given


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
