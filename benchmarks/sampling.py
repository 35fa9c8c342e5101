"""Draws per second on one core, random bits included, beside OpenDP where it is installed.

Run `python benchmarks/sampling.py`. OpenDP is in the extra `bench`.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from statistics import median
from time import perf_counter

from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism

REPETITIONS = 5
OUR_DRAWS = 20_000_000
THEIR_DRAWS = 20_000

LAWS: list[Mechanism] = [
    *(DiscreteGaussian(s) for s in ("0.5", "5", "456", "1e4", "1e6", "1e12")),
    *(DiscreteLaplace(s) for s in ("1", "10", "300", "1e6")),
]


def draws_per_second(draw: Callable[[], object], n: int) -> float:
    """The median of the repetitions, after one call to compile and tabulate."""
    draw()
    seconds = []
    for _ in range(REPETITIONS):
        start = perf_counter()
        draw()
        seconds.append(perf_counter() - start)
    return n / median(seconds)


def opendp_sampler(law: Mechanism) -> Callable[[], object]:
    """OpenDP's integer mechanism on a vector of zeros, which is how it draws many samples."""
    import opendp.prelude as dp  # pyright: ignore[reportMissingImports]

    dp.enable_features("contrib")
    zeros = [0] * THEIR_DRAWS
    domain = dp.vector_domain(dp.atom_domain(T=int))
    if isinstance(law, DiscreteGaussian):
        scale = float(law.sigma_squared) ** 0.5
        measurement = dp.m.make_gaussian(domain, dp.l2_distance(T=int), scale=scale)
    else:
        measurement = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=float(law.scale))
    return lambda: measurement(zeros)


def opendp_version() -> str | None:
    try:
        return version("opendp")
    except PackageNotFoundError:
        return None


def main() -> None:
    theirs_version = opendp_version()
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    print(f"median of {REPETITIONS} runs of {OUR_DRAWS:,} draws each, on one core")
    if theirs_version:
        print(f"OpenDP {theirs_version}: {THEIR_DRAWS:,} draws a run")
    else:
        print("OpenDP is not installed (extra `bench`): no comparison in this run")
    print(f"\n{'law':<26}{'Trellis, M/s':>14}{'OpenDP, M/s':>14}{'ratio':>10}")
    for law in LAWS:
        label = f"{law.name} {float(law.parameter):g}"
        ours = draws_per_second(lambda law=law: law.sample(OUR_DRAWS), OUR_DRAWS)
        row = f"{label:<26}{ours / 1e6:>14.1f}"
        if theirs_version:
            theirs = draws_per_second(opendp_sampler(law), THEIR_DRAWS)
            row += f"{theirs / 1e6:>14.3f}{ours / theirs:>9,.0f}x"
        print(row, flush=True)


if __name__ == "__main__":
    main()
