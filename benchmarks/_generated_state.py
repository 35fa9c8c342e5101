"""A made-up state in the shape of the redistricting persons file, with its strategy of 2020."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from trellis.model import Hierarchy, Schema
from trellis.model.tables.queries import parse_query
from trellis.model.tables.schema import Recode

TYPES = [f"type{i}" for i in range(8)]
SCHEMA = Schema(
    {
        "hhgq": TYPES,
        "votingage": ["minor", "adult"],
        "hispanic": ["no", "yes"],
        "cenrace": [f"race{i:02d}" for i in range(63)],
    },
    {"hhinst": Recode("hhgq", {"home": TYPES[:1], "inst": TYPES[1:5], "other": TYPES[5:]})},
)
QUERIES = (
    "total",
    "cenrace",
    "hispanic",
    "votingage",
    "hhinst",
    "hhgq",
    "votingage * hispanic",
    "hispanic * cenrace",
    "votingage * cenrace",
    "votingage * hispanic * cenrace",
    "detailed",
)
RHO = Fraction(293764, 114921)
LEVELS = ("us", "state", "county", "tract", "block_group", "block")
LEVEL_SHARES = dict(zip(LEVELS, (104, 1440, 447, 687, 1256, 165), strict=True))
QUERY_SHARES = {
    "us": (4097, (0, 52, 26, 26, 26, 26, 26, 130, 130, 442, 3213)),
    "state": (4097, (3773, 6, 6, 6, 6, 6, 6, 12, 12, 34, 230)),
    "county": (4097, (3126, 10, 10, 10, 10, 10, 10, 28, 28, 101, 754)),
    "tract": (4102, (1567, 8, 5, 5, 5, 5, 5, 1933, 20, 67, 482)),
    "block_group": (4099, (1705, 3, 3, 3, 3, 3, 3, 1055, 9, 24, 1288)),
    "block": (4097, (5, 9, 5, 5, 5, 5, 5, 21, 21, 71, 3945)),
}


def variances(level: str) -> dict[str, float]:
    """The variance of the noise on each query of a level that has a share."""
    whole, shares = QUERY_SHARES[level]
    rho = RHO * Fraction(LEVEL_SHARES[level], 4099)
    return {
        query: float(1 / (rho * Fraction(share, whole)))
        for query, share in zip(QUERIES, shares, strict=True)
        if share
    }


def hierarchy(n_blocks: int, rng: np.random.Generator) -> Hierarchy:
    """A nation of one state: 146 blocks to a block group, 3 of them to a tract, 6 to a county."""
    n_groups = max(1, n_blocks // 146)
    group = np.sort(rng.integers(0, n_groups, n_blocks))
    group[:n_groups] = np.arange(n_groups)
    group.sort()
    tract_of = np.arange(n_groups) // 3
    county_of = np.arange(tract_of[-1] + 1) // 6
    paths = []
    for block, g in enumerate(group):
        tract = tract_of[g]
        county = county_of[tract]
        paths.append(("us", "56", f"c{county:04d}", f"t{tract:05d}", f"g{g:06d}", f"b{block:08d}"))
    return Hierarchy.from_paths(paths, LEVELS)


def population(tree: Hierarchy, rng: np.random.Generator) -> NDArray[np.int16]:
    """Blocks x cells: many empty blocks, few races, group quarters in few blocks."""
    n_blocks = tree.sizes[-1]
    race = np.sort(rng.dirichlet(np.full(63, 0.08)))[::-1]
    race = np.sort(0.7 * race + 0.3 * np.r_[0.8, 0.1, 0.05, 0.02, 0.02, np.full(58, 0.01 / 58)])
    race = race[::-1] / race.sum()
    size = np.floor(rng.lognormal(2.0, 1.2, n_blocks)) * (rng.random(n_blocks) < 0.65)
    group_of = tree.parents(tree.leaf_level)
    local = rng.dirichlet(race * 40 + 1e-3, tree.sizes[-2])
    hispanic = rng.beta(2, 12, tree.sizes[-2])
    facility = np.where(rng.random(n_blocks) < 0.03, rng.integers(1, 8, n_blocks), 0)
    cumulated = np.cumsum(local, axis=1)
    out = np.zeros(n_blocks * SCHEMA.n_cells, dtype=np.int16)
    for first in range(0, n_blocks, 4096):
        blocks = np.arange(first, min(first + 4096, n_blocks))
        block = np.repeat(blocks, size[blocks].astype(int))
        group = group_of[block]
        race_of = (rng.random((block.size, 1)) > cumulated[group]).sum(axis=1).clip(max=62)
        adult = rng.random(block.size) < 0.77
        yes = rng.random(block.size) < hispanic[group]
        cell = ((facility[block] * 2 + adult) * 2 + yes) * 63 + race_of
        np.add.at(out, block * SCHEMA.n_cells + cell, 1)
    return out.reshape(n_blocks, -1)


@dataclass(frozen=True, eq=False)
class State:
    """Truth and noisy answers of all levels; answers are kept narrow and widened when read."""

    hierarchy: Hierarchy
    schema: Schema
    measured: Sequence[Mapping[str, float]]
    answers: Sequence[Mapping[str, NDArray]]
    truth: Sequence[NDArray]

    def read(self, level: int, query: str, first: int, last: int) -> NDArray[np.int64]:
        return self.answers[level][query][first:last].astype(np.int64)


def generated_state(n_blocks: int, seed: int, noise_seed: int) -> State:
    """Rounded normal noise stands in for the exact sampler, which is timed elsewhere."""
    rng = np.random.default_rng(seed)
    tree = hierarchy(n_blocks, rng)
    blocks = population(tree, rng)
    truth: list[NDArray] = [blocks]
    for level in reversed(range(tree.n_levels - 1)):
        below = truth[0] if level + 1 < tree.leaf_level else truth[0].astype(np.int32)
        truth.insert(0, np.add.reduceat(below, tree.child_start[level][:-1], axis=0))
    measured = [variances(level) for level in LEVELS]
    return with_noise(State(tree, SCHEMA, measured, (), truth), noise_seed)


def with_noise(state: State, seed: int) -> State:
    rng = np.random.default_rng(seed)
    answers = []
    for level, queries in enumerate(state.measured):
        narrow = np.int16 if level == state.hierarchy.leaf_level else np.int32
        noisy = {}
        for name, variance in queries.items():
            query = parse_query(SCHEMA, name)
            order = np.argsort(query.cell_of, kind="stable")
            cuts = np.searchsorted(query.cell_of[order], np.arange(query.n_cells))
            out = np.empty((len(state.truth[level]), query.n_cells), dtype=narrow)
            for first in range(0, len(out), 4096):
                cells = state.truth[level][first : first + 4096, order]
                part = np.add.reduceat(cells, cuts, axis=1, dtype=np.int32)
                noise = rng.standard_normal(part.shape, dtype=np.float32) * np.float32(
                    variance**0.5
                )
                out[first : first + 4096] = part + np.rint(noise)
            noisy[name] = out
        answers.append(noisy)
    return State(state.hierarchy, state.schema, state.measured, answers, state.truth)
