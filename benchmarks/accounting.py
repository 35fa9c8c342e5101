"""The 2020 census composition: epsilon and time, beside other accountants where installed.

Run `python benchmarks/accounting.py`. The others are in the extra `bench`. All answer the same
question in the same run: 8 levels of 10 queries, sigma^2 = 10 / (2 * 3.65 * share), add/remove.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from statistics import median
from time import perf_counter

import numpy as np

from trellis.privacy.accounting import Accountant
from trellis.privacy.accounting.distributions.bracket import bracket_curve
from trellis.privacy.accounting.privacy_curve import forget
from trellis.privacy.mechanisms import DiscreteGaussian

DELTA = 1e-10
MORE = 1000
REPETITIONS = 5
SHARES = (20, 274, 85, 131, 131, 238, 118, 3)
NOISE = [DiscreteGaussian(10 / (2 * Fraction("3.65") * Fraction(a, 1000))) for a in SHARES]
SIGMAS = [float(noise.sigma_squared) ** 0.5 for noise in NOISE]

EpsilonOf = Callable[[float], float]


@dataclass(frozen=True)
class Contender:
    """`prepare` does all work up to a function from delta to epsilon."""

    name: str
    package: str | None
    prepare: Callable[[], EpsilonOf]
    note: str = ""


def census() -> Accountant:
    accountant = Accountant("add_remove")
    for noise in NOISE:
        accountant = accountant.add(noise, count=10)
    return accountant


def trellis() -> EpsilonOf:
    forget()
    return census().epsilon


def trellis_bracket() -> EpsilonOf:
    curve = bracket_curve(census().composition, length=2**20)
    assert curve is not None
    return lambda delta: float(curve.epsilon_bounds(np.array([delta]))[1][0])


def dp_accounting(use_connect_dots: bool) -> EpsilonOf:
    from dp_accounting.pld import (  # pyright: ignore[reportMissingImports]
        privacy_loss_distribution as pld,
    )

    total = pld.identity()
    for sigma in SIGMAS:
        one = pld.from_discrete_gaussian_mechanism(sigma, use_connect_dots=use_connect_dots)
        total = total.compose(one.self_compose(10))
    return total.get_epsilon_for_delta


def opendp() -> EpsilonOf:
    import opendp.prelude as dp  # pyright: ignore[reportMissingImports]

    dp.enable_features("contrib")
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    measurements = [dp.m.make_gaussian(*space, scale=s) for s in SIGMAS for _ in range(10)]
    return dp.c.make_zCDP_to_approxDP(dp.c.make_composition(measurements)).map(1).epsilon


def prv_accountant() -> EpsilonOf:
    from prv_accountant import (  # pyright: ignore[reportMissingImports]
        GaussianMechanism,
        PRVAccountant,
    )

    tens = [10] * len(SIGMAS)
    prvs = [GaussianMechanism(sigma) for sigma in SIGMAS]
    accountant = PRVAccountant(
        prvs=prvs, max_self_compositions=tens, eps_error=0.01, delta_error=DELTA / 100
    )
    return lambda delta: accountant.compute_epsilon(delta, tens)[2]


CONTENDERS = [
    Contender("Trellis", None, trellis, "exact lattice, certified"),
    Contender("Trellis, bracket tier", None, trellis_bracket, "forced; the lattice fits"),
    Contender("dp-accounting", "dp-accounting", lambda: dp_accounting(False), "default grid 1e-4"),
    Contender(
        "dp-accounting, dots",
        "dp-accounting",
        lambda: dp_accounting(True),
        "connect the dots, 1e-4",
    ),
    Contender("OpenDP", "opendp", opendp, "zCDP conversion"),
    Contender("prv-accountant", "prv-accountant", prv_accountant, "continuous noise, eps +-0.01"),
]


def installed(package: str | None) -> bool:
    try:
        return package is None or bool(version(package))
    except PackageNotFoundError:
        return False


def first_value(contender: Contender) -> tuple[float, float]:
    """Epsilon, and seconds from nothing to epsilon: the median, after a run to warm up."""
    epsilon = contender.prepare()(DELTA)
    seconds = []
    for _ in range(REPETITIONS):
        start = perf_counter()
        contender.prepare()(DELTA)
        seconds.append(perf_counter() - start)
    return epsilon, median(seconds)


def main() -> None:
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    print(f"epsilon at delta = {DELTA:g}; median of {REPETITIONS} runs, ratio to the first line\n")
    print(f"{'':<24}{'epsilon':>12}{'excess':>11}{'first value, ms':>17}{'ratio':>9}")
    baseline = None
    for contender in CONTENDERS:
        if not installed(contender.package):
            print(f"{contender.name:<24}not installed (extra `bench`)")
            continue
        epsilon, seconds = first_value(contender)
        baseline = baseline or (epsilon, seconds)
        print(
            f"{contender.name:<24}{epsilon:>12.6f}{epsilon - baseline[0]:>+11.1e}"
            f"{1e3 * seconds:>17.1f}{seconds / baseline[1]:>8.1f}x  {contender.note}",
            flush=True,
        )

    accountant, deltas = census(), np.geomspace(1e-1, 1e-30, MORE)
    accountant.epsilon(DELTA)
    start = perf_counter()
    accountant.epsilon_curve(deltas)
    print(f"\n{MORE:,} more values of Trellis: {1e3 * (perf_counter() - start):.1f} ms")


if __name__ == "__main__":
    main()
