"""Sensitivities of group-size tables by brute force over all neighbours in tiny worlds."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from trellis.errors import PrivacyError
from trellis.privacy.group_size_changes import (
    SizeQuery,
    TableChange,
    whole_unit,
    worst_change,
    worst_vectors,
)
from trellis.privacy.neighbours import Neighbours

CAP = 4
REGION_OF_UNIT = {"p": 0, "q": 0, "s": 0, "t": 0, "u": 1}
"""The public register: units and their regions."""

Contents = tuple[tuple[str, int], ...]
"""A person's records: unit and quantity."""


def tables(query: SizeQuery, sizes: dict[str, int]) -> np.ndarray:
    """Regions x sizes, or regions x (sizes - 1); sizes beyond the cap count as the cap."""
    histogram = np.zeros((2, CAP + 1), int)
    for unit, size in sizes.items():
        histogram[REGION_OF_UNIT[unit], min(size, CAP)] += 1
    return histogram if query is SizeQuery.HISTOGRAM else np.cumsum(histogram, axis=1)[:, :-1]


def with_records(sizes: dict[str, int], contents: Contents) -> dict[str, int]:
    sizes = dict(sizes)
    for unit, quantity in contents:
        sizes[unit] += quantity
    return sizes


def contents_of(n_records: int, max_quantity: int) -> list[Contents]:
    records = list(product(REGION_OF_UNIT, range(max_quantity + 1)))
    return list(combinations_with_replacement(records, n_records))


def all_changes(query: SizeQuery, neighbours: Neighbours, m: int, z: int):
    """Changes of the tables over all backgrounds and all contents of one person."""
    moved = {}
    contents = contents_of(m, z)
    for background in product(range(CAP), repeat=len(REGION_OF_UNIT)):
        sizes = dict(zip(REGION_OF_UNIT, background, strict=True))
        after = np.array([tables(query, with_records(sizes, c)) for c in contents])
        after = np.unique(after.reshape(len(contents), -1), axis=0)
        if neighbours is Neighbours.ADD_REMOVE:
            changes = after - tables(query, sizes).ravel()
        else:
            changes = (after[:, None] - after[None]).reshape(-1, after.shape[1])
        for change in np.unique(changes, axis=0):
            moved[change.tobytes()] = change
    return list(moved.values())


@pytest.mark.parametrize("query", SizeQuery)
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize(("m", "z"), [(1, 1), (1, 2), (1, 3), (2, 1)])
def test_worst_change_is_reached_and_never_passed(query, neighbours, m, z):
    changes = all_changes(query, neighbours, m, z)
    claimed = worst_change(query, neighbours, m, z)
    assert max(int(np.abs(c).sum()) for c in changes) == claimed.l1
    assert max(int((c**2).sum()) for c in changes) == claimed.l2_squared


@pytest.mark.parametrize("query", SizeQuery)
@pytest.mark.parametrize("neighbours", Neighbours)
def test_changes_have_the_entries_of_the_worst_vectors(query, neighbours):
    seen = set()
    for change in all_changes(query, neighbours, 1, 1):
        entries = change[change != 0]
        if entries.size:
            seen.add(min(tuple(sorted(entries)), tuple(sorted(-entries))))
    claimed = {
        min(tuple(sorted(v)), tuple(sorted(-x for x in v)))
        for v in worst_vectors(query, neighbours)
    }
    if query is SizeQuery.HISTOGRAM and neighbours is Neighbours.REPLACE:
        # Parts of the vectors cancel where one unit's loss is another's gain, or past the cap.
        assert claimed <= seen
        smaller = seen - claimed
        assert smaller == {(-1, 1)}
    else:
        assert claimed <= seen
        assert seen - claimed <= {(-1,)}


def test_doubling_understates_replacing_in_the_histogram():
    one = worst_change(SizeQuery.HISTOGRAM, Neighbours.ADD_REMOVE)
    two = worst_change(SizeQuery.HISTOGRAM, Neighbours.REPLACE)
    assert (one.l2_squared, two.l2_squared) == (2, 6)


@pytest.mark.parametrize("m", [1, 2])
def test_the_number_of_units_never_moves(m):
    for background in product(range(3), repeat=len(REGION_OF_UNIT)):
        sizes = dict(zip(REGION_OF_UNIT, background, strict=True))
        before = tables(SizeQuery.HISTOGRAM, sizes).sum(axis=1)
        for contents in contents_of(m, 1):
            after = tables(SizeQuery.HISTOGRAM, with_records(sizes, contents)).sum(axis=1)
            assert np.array_equal(before, after)


def test_the_published_lemma_fails_for_singletons():
    """Sizes from 1, groups made of the records: one record moves every cumulative count."""
    sizes = [1, 2, 3]
    cumulative = [sum(size <= s for size in sizes) for s in range(1, CAP + 1)]
    without = [sum(size <= s for size in sizes[1:]) for s in range(1, CAP + 1)]
    moved = sum(abs(a - b) for a, b in zip(cumulative, without, strict=True))
    assert moved == CAP > worst_change(SizeQuery.CUMULATIVE, Neighbours.ADD_REMOVE).l1


@pytest.mark.parametrize("query", SizeQuery)
@pytest.mark.parametrize("members", [1, 2, 4])
def test_a_whole_unit(query, members):
    changes = []
    for background in product(range(CAP + 1), repeat=len(REGION_OF_UNIT) - 1):
        empty = dict(zip(REGION_OF_UNIT, (0, *background), strict=True))
        for k in range(members + 1):
            full = empty | {"p": k}
            changes.append((tables(query, full) - tables(query, empty)).ravel())
    claimed = whole_unit(query, members)
    assert max(int(np.abs(c).sum()) for c in changes) == claimed.l1
    assert max(int((c**2).sum()) for c in changes) == claimed.l2_squared


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "2"])
def test_bad_bounds_are_refused(value):
    for call in (
        lambda: worst_change(SizeQuery.HISTOGRAM, Neighbours.REPLACE, value),
        lambda: worst_change(SizeQuery.HISTOGRAM, Neighbours.REPLACE, 1, value),
        lambda: whole_unit(SizeQuery.CUMULATIVE, value),
    ):
        with pytest.raises(PrivacyError, match="at least 1"):
            call()
    assert TableChange(1, 1) == worst_change(SizeQuery.CUMULATIVE, Neighbours.ADD_REMOVE)
