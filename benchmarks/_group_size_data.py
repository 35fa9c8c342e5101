"""Tables of group sizes to compare mechanisms on."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from trellis.model import Hierarchy
from trellis.privacy.mechanisms import DiscreteLaplace

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"
TAXI = SHARED_DATA / "taxi_group_sizes.parquet"
HOUSEHOLDS = SHARED_DATA / "household_size_tract_2000_ca_ma.parquet"

Tables = list[NDArray[np.int64]]


@dataclass(frozen=True)
class GroupSizes:
    """True numbers of groups: one array per level, regions x sizes from 0, root first."""

    name: str
    tree: Hierarchy
    tables: Tables

    @property
    def groups(self) -> NDArray[np.int64]:
        return self.tables[-1].sum(axis=1)

    @property
    def total(self) -> int:
        return int(self.groups.sum())

    @property
    def n_cells(self) -> int:
        return sum(t.size for t in self.tables)

    def noisy_histogram(self, epsilon: Fraction) -> Tables:
        """Pure epsilon-DP in all; one person moves two cells in each level."""
        return _with_noise(self.tables, 2 * len(self.tables) / epsilon)

    def noisy_cumulative(self, epsilon: Fraction) -> Tables:
        """One person moves one cumulative count in each level; the last one is public."""
        cumulative = [np.cumsum(t, axis=1)[:, :-1] for t in self.tables]
        return _with_noise(cumulative, len(self.tables) / epsilon)


def _with_noise(tables: Tables, scale: Fraction) -> Tables:
    noise = DiscreteLaplace(scale)
    return [t + noise.sample(t.size).reshape(t.shape) for t in tables]


def census_like(n_sizes: int = 1000, n_groups: int = 117_600_000, seed: int = 0) -> GroupSizes:
    """Households and group quarters of a nation, 52 states and 3,143 counties, as in the paper.

    Shares of sizes 1 to 7 are about those of the 2010 census; beyond, each size has n_7 / n_6
    times the groups of the one before, and 50 groups are of any size from 10 up.
    """
    rng = np.random.default_rng(seed)
    per_state = 1 + rng.multinomial(3143 - 52, rng.dirichlet(np.full(52, 2.0)))
    tree = _tree([per_state], ("nation", "state", "county"))
    share = np.zeros(n_sizes)
    share[1:8] = [0.267, 0.328, 0.161, 0.134, 0.065, 0.028, 0.013]
    ratio = share[7] / share[6]
    share[8:] = share[7] * ratio ** np.arange(1, n_sizes - 7)
    county = rng.lognormal(0, 1.4, 3143)
    leaves = rng.poisson(np.outer(county / county.sum() * n_groups, share / share.sum()))
    np.add.at(leaves, (rng.integers(0, 3143, 50), rng.integers(10, n_sizes, 50)), 1)
    leaves[np.argmax(leaves[:, 2]), 2] += n_groups - leaves.sum()
    return GroupSizes("census-like", tree, tree.sum_up(leaves))


def five_levels(n_sizes: int = 200, seed: int = 0) -> GroupSizes:
    """1 / 4 / 52 / 800 / 12,000 regions."""
    rng = np.random.default_rng(seed)
    counts = [4, 52, 800, 12_000]
    fans = [
        1 + rng.multinomial(below - above, np.full(above, 1 / above))
        for above, below in zip([1, *counts[:-1]], counts, strict=True)
    ]
    tree = _tree(fans[1:], ("nation", "region", "state", "county", "tract"))
    share = 0.7 ** np.arange(n_sizes)
    leaves = rng.poisson(np.outer(rng.lognormal(0, 1, 12_000), 2000 * share / share.sum()))
    return GroupSizes("five levels", tree, tree.sum_up(leaves))


def taxis() -> GroupSizes:
    """Pickups of New York taxis by zone; see the README beside the file."""
    columns = pq.read_table(TAXI).to_pydict()
    codes = [f"{b}{z:02d}" for b, z in zip(columns["borough"], columns["zone"], strict=True)]
    tree = Hierarchy.from_paths(
        sorted({("city", code[0], code) for code in codes}), ("city", "borough", "zone")
    )
    leaves = np.zeros((tree.size("zone"), max(columns["size"]) + 1), np.int64)
    place = {code: i for i, code in enumerate(tree.codes("zone").tolist())}
    np.add.at(leaves, ([place[c] for c in codes], columns["size"]), columns["groups"])
    return GroupSizes("taxis", tree, tree.sum_up(leaves))


def households() -> GroupSizes:
    """Households of two states by size, 7 for 7 and more; see the README beside the file."""
    columns = ["h1", "h2", "h3", "h4", "h5", "h6", "h7p"]
    table = pq.read_table(HOUSEHOLDS, columns=["geoid", *columns]).sort_by("geoid")
    codes = table["geoid"].to_pylist()
    tree = Hierarchy.from_paths(
        [("CA-MA", code[:2], code[:5], code) for code in codes],
        ("region", "state", "county", "tract"),
    )
    leaves = np.zeros((len(codes), 8), np.int64)
    leaves[:, 1:] = np.stack([table[column].to_numpy() for column in columns], axis=1)
    return GroupSizes("households", tree, tree.sum_up(leaves))


def _tree(fans: list[NDArray[np.int64]], names: tuple[str, ...]) -> Hierarchy:
    """A tree whose nodes of each level have so many children."""
    paths = [("r", f"{i:03d}") for i in range(fans[0].size)]
    for fan in fans:
        paths = [
            (*path, f"{path[-1]}.{child:04d}")
            for path, n in zip(paths, fan, strict=True)
            for child in range(n)
        ]
    return Hierarchy.from_paths(paths, names)
