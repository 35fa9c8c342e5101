"""Margins of counts, areas, group sizes and flows use what is published exactly."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flow_worlds
import size_worlds
import spine_worlds
import trellis
from histogram_release_worlds import problems, rewrite
from trellis.model.plans.kinds.group_sizes import SIZE_METHODS
from trellis.model.results.exact_totals import ExactTotals
from trellis.model.tables.carried_bounds import Range
from trellis.model.trees.areas import Category
from trellis.release.tables.intervals import interval
from worlds import SPEC, changed

AREAS = pa.table(
    {
        "nation": ["r"] * 6,
        "state": ["a", "a", "a", "b", "b", "c"],
        "town": ["a1", "a2", "a3", "b1", "b2", "c1"],
    }
)
PEOPLE = pa.table({"town": ["a1", "a2", "a3", "b1", "b2", "c1"], "people": [3, 0, 1, 0, 0, 9]})


def columns(table, *names):
    return [table[name].to_numpy(zero_copy_only=False) for name in names or MARGIN]


MARGIN = ("count", "std_error", "lower", "upper")


def counts_release(folder, **changes):
    spec = changed(SPEC, privacy__budget={"rho": "1/50"}, **changes)
    del spec["data"]["source"], spec["hierarchy"]["source"]
    return trellis.run(
        trellis.Spec.parse(spec, folder), folder / "run", data=PEOPLE, hierarchy=AREAS
    )


# -- intervals ------------------------------------------------------------------------------------


@given(
    centre=st.floats(-50, 60),
    error=st.floats(0, 20),
    ends=st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted),
    data=st.data(),
)
def test_facts_narrow_an_interval_and_never_lose_the_truth(centre, error, ends, data):
    truth, count = data.draw(st.integers(*ends)), data.draw(st.integers(*ends))
    numbers = np.array([count]), np.array([centre]), np.array([error])
    plain = interval(*numbers, 1.6)
    lower, upper = interval(*numbers, 1.6, Range(*np.array(ends, dtype=float)))
    assert ends[0] <= lower[0] <= count <= upper[0] <= ends[1]
    if plain[0][0] <= truth <= plain[1][0]:
        assert lower[0] <= truth <= upper[0]


# -- counts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["gls_topdown", "gls"])
def test_exact_totals_of_states_bound_their_towns(tmp_path, method):
    made = counts_release(tmp_path, unprotected={"totals": ["state"]}, estimate={"method": method})
    assert problems(made.path) == {}
    count, error, lower, upper = columns(made.table("town"))
    most = np.array([4, 4, 4, 0, 0, 9])
    assert (upper <= np.maximum(most, np.ceil(count))).all()
    assert ((lower <= count) & (count <= upper)).all()
    fixed = np.array([False, False, False, True, True, True])  # nobody, nobody, the only town
    np.testing.assert_array_equal(error == 0, fixed)
    for values in (count, lower, upper):
        np.testing.assert_array_equal(values[fixed], most[fixed])


def test_several_cells_are_bounded_by_the_total(tmp_path):
    cells = {"young": "people", "old": "other"}
    people = PEOPLE.append_column("other", pa.array([0, 0, 2, 0, 0, 0]))
    spec = changed(SPEC, privacy__budget={"rho": "1/500"}, data={"area": "town", "cells": cells})
    del spec["hierarchy"]["source"]
    made = trellis.run(
        trellis.Spec.parse(spec, tmp_path), tmp_path / "run", data=people, hierarchy=AREAS
    )
    assert problems(made.path) == {}
    for level in ("nation", "state", "town"):
        assert columns(made.table(level), "upper")[0].max() <= 15


@pytest.mark.parametrize("end", ["lower", "upper"])
def test_an_interval_outside_the_facts_is_noticed(tmp_path, end):
    path = counts_release(tmp_path, unprotected={"totals": ["state"]}).path
    forged = {"lower": [-1, -1, -1, 0, 0, 9], "upper": [5, 5, 5, 0, 0, 9]}[end]
    rewrite(path / "release" / "town.parquet", **{end: lambda _: forged})
    assert "stated confidence" in " ".join(problems(path)["intervals"])


def test_a_standard_error_of_a_known_count_is_noticed(tmp_path):
    path = counts_release(tmp_path, unprotected={"totals": ["state"]}).path
    for file in ("release/town.parquet", "estimates/level=town.parquet"):
        rewrite(path / file, std_error=lambda values: [*values[:-1], 0.1])
    assert "exact facts leave one number" in " ".join(problems(path)["intervals"])


# -- areas of interest ----------------------------------------------------------------------------


def test_areas_of_whole_and_of_parts():
    """One is made of two states and part of an empty one, one of parts, one of a lone town."""
    tree = trellis.model.Hierarchy.from_paths(list(zip(*AREAS.to_pydict().values(), strict=True)))
    known = ExactTotals(tree, 1, np.array([4, 0, 9]), 1)
    category = Category.of(["x", "x", "x", "x", "y", "x"])
    found = known.of_category(category)
    assert np.hstack([found.lower, found.upper]).tolist() == [[13, 13], [0, 0]]
    found = known.of_category(Category.of(["x", "y", None, None, None, "y"]))
    assert np.hstack([found.lower, found.upper]).tolist() == [[0, 4], [9, 13]]
    several = ExactTotals(tree, 0, np.array([13]), 2).of_category(category)
    assert np.hstack([several.lower, several.upper]).tolist() == [[0, 13], [0, 13]]


def test_areas_on_a_spine_know_the_exact_totals(tmp_path):
    table = spine_worlds.blocks()
    tract = [code[:11] for code in table["geoid"].to_pylist()]
    nobody = {tract[3], tract[80]}
    people = [0 if t in nobody else n for t, n in zip(tract, table["pop"].to_pylist(), strict=True)]
    table = table.set_column(1, "pop", pa.array(people))
    totals = dict.fromkeys(tract, 0)
    for t, n in zip(tract, people, strict=True):
        totals[t] += n
    made = spine_worlds.release(
        tmp_path, table, unprotected={"totals": ["tract"]}, privacy={"budget": {"rho": "1/100"}},
        spine=[{"regroup_leaves": {"areas": ["place"], "fanout_cutoff": 2}}],
    )  # fmt: skip
    assert problems(made.path) == {}
    blocks = made.table("block")
    most = np.array([totals[code[:11]] for code in blocks["geocode"].to_pylist()])
    error, upper = columns(blocks, "std_error", "upper")
    assert (upper <= most).all()
    assert (error[most == 0] == 0).all()
    zone = made.table("zone")
    allowed = {}
    for code, name in zip(tract, table["zone"].to_pylist(), strict=True):
        allowed.setdefault(name, set()).add(code)
    most = [sum(totals[t] for t in allowed[z]) for z in zone["geocode"].to_pylist()]
    assert (columns(zone, "upper")[0] <= most).all()


# -- group sizes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", SIZE_METHODS)
def test_no_size_has_more_groups_than_the_area(tmp_path, mechanism):
    numbers = pa.table({"town": ["a1", "a2", "b1", "c"], "homes": [3, 0, 2, 2]})
    homes = pa.table({"town": ["a1", "a1", "b1", "c"], "size": [1, 4, 2, 7], "homes": [2, 1, 2, 2]})
    spec = size_worlds.spec_in(
        tmp_path,
        **size_worlds.TABLE_FORM,
        estimate__method=mechanism,
        privacy__budget={"epsilon": "1/4"},
    )
    made = trellis.run(
        spec, tmp_path / "run", data=homes, hierarchy=size_worlds.AREAS, register=numbers
    )
    assert problems(made.path) == {}
    for level, groups in (("town", [3, 0, 2]), ("state", [3, 2, 2]), ("nation", [7])):
        count, error, upper = columns(made.table(level), "count", "std_error", "upper")
        most = np.repeat(groups, 5)
        assert (upper <= np.maximum(most, count)).all()
        known = (most == 0) & (count == 0)
        assert (error[known] == 0).all()
        assert (upper[known] == 0).all()
        if SIZE_METHODS[mechanism].keeps_groups:
            np.testing.assert_array_equal(error == 0, most == 0)


# -- flows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ["chebyshev", "gls_l2"])
def test_no_flow_is_above_the_exact_total_and_a_lone_pair_has_it(tmp_path, estimator):
    areas = pa.table({"nation": ["r"] * 2, "state": ["a"] * 2, "town": ["a1", "a2"]})
    pairs = pa.table({"home": ["a1", "a2"], "work": ["a1", "a1"], "workers": [4, 1]})
    spec = flow_worlds.spec_in(
        tmp_path, estimate__method=estimator, privacy__budget={"rho": "1/200"}
    )
    made = trellis.run(spec, tmp_path / "run", data=pairs, hierarchy=areas)
    assert problems(made.path) == {}
    for level, size in zip(made.plan.levels, made.plan.sizes, strict=True):
        count, error, lower, upper = columns(made.table(level))
        assert (upper <= 5).all()
        if size == 1:
            assert (count.tolist(), error.tolist()) == ([5], [0])
            assert (lower.tolist(), upper.tolist()) == ([5], [5])
    last = made.plan.levels[-1]
    rewrite(made.path / "release" / f"{last}.parquet", upper=lambda v: [6] * len(v))
    assert "stated confidence" in " ".join(problems(made.path)["flow_intervals"])
