import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import histogram_worlds as worlds
from oracles.exact_gls import exact_histogram_gls, exact_marginal
from oracles.histogram_gls import dense_histogram_gls, dense_marginal_variances
from strategies import hierarchies
from trellis.errors import StructureError
from trellis.estimate.histograms.best_linear import BestLinear
from trellis.estimate.histograms.estimators import (
    estimate_gls,
    estimate_gls_topdown,
    marginal_errors,
)
from trellis.estimate.histograms.evidence import EvidenceInMemory
from trellis.model import Hierarchy, Schema
from trellis.model.tables.queries import parse_query
from trellis.model.tables.schema import Recode
from trellis.numerics.histograms.algebra.query_algebra import Algebra
from trellis.numerics.histograms.tree_covariances import TreeCovariances

QUERIES = {name: parse_query(worlds.SCHEMA, name) for name in worlds.NAMES}


@st.composite
def strategies_of_measurement(draw, n_levels):
    """Queries and variances by level; the leaves are measured in detail, exact answers are rare."""
    variance = st.one_of(st.floats(0.1, 50), st.just(0.0))
    levels = [
        draw(st.dictionaries(st.sampled_from(worlds.NAMES[:-1]), variance, max_size=4))
        for _ in range(n_levels)
    ]
    levels[-1]["detailed"] = draw(st.floats(0.1, 50))
    return levels


@settings(max_examples=30, deadline=None)
@given(data=st.data(), tree=hierarchies(max_levels=3), seed=st.integers(0, 2**32 - 1))
def test_estimates_and_errors_match_dense_inversion(data, tree, seed):
    measured = data.draw(strategies_of_measurement(tree.n_levels))
    _, evidence = worlds.evidence(tree, measured, np.random.default_rng(seed), whole=False)
    dense, covariance = dense_histogram_gls(tree, worlds.SCHEMA, measured, evidence.answers)
    covariances = TreeCovariances.of(tree, worlds.SCHEMA.shape, QUERIES, measured)
    found = worlds.finals_by_level(BestLinear(evidence, covariances), tree.leaf_level)
    requests = [(level, name) for level in tree.level_names for name in worlds.NAMES]
    errors = marginal_errors(tree, worlds.SCHEMA, measured, requests)
    for level, name in enumerate(tree.level_names):
        np.testing.assert_allclose(found[level].T, dense[level], rtol=1e-8, atol=1e-8)
        for query in worlds.NAMES:
            slow = dense_marginal_variances(tree, worlds.SCHEMA, covariance, level, query)
            fast = errors[name, query].rows(0, tree.sizes[level]) ** 2
            np.testing.assert_allclose(fast, slow, rtol=1e-8, atol=1e-8)


def test_centres_of_requested_marginals():
    measured = [{"total": 0.0}, {"three": 2.0}, {"b": 1.0, "total": 3.0}, {"detailed": 2.0}]
    _, evidence = worlds.evidence(worlds.TREE, measured, np.random.default_rng(1))
    requests = [(level, q) for level in worlds.TREE.level_names for q in ("two * b", "total")]
    found = estimate_gls_topdown(evidence, 0, marginals=requests)
    dense, _ = dense_histogram_gls(worlds.TREE, worlds.SCHEMA, measured, evidence.answers)
    for (level, name), marginal in found.margins.items():
        cells = dense[worlds.TREE.index(level)]
        expected = QUERIES[name].answer(cells)
        np.testing.assert_allclose(marginal.centre, expected, rtol=1e-8, atol=1e-8)
    assert found.margins["nation", "total"].std_error.max() == 0


@settings(max_examples=15, deadline=None)
@given(data=st.data(), tree=hierarchies(max_levels=3), seed=st.integers(0, 2**32 - 1))
def test_gls_gives_the_marginals_alone(data, tree, seed):
    measured = data.draw(strategies_of_measurement(tree.n_levels))
    _, evidence = worlds.evidence(tree, measured, np.random.default_rng(seed))
    requests = [(level, name) for level in tree.level_names for name in worlds.NAMES]
    found = estimate_gls(evidence, marginals=requests)
    dense, covariance = dense_histogram_gls(tree, worlds.SCHEMA, measured, evidence.answers)
    for (level, name), marginal in found.items():
        index = tree.index(level)
        expected = QUERIES[name].answer(dense[index])
        np.testing.assert_allclose(marginal.centre, expected, rtol=1e-8, atol=1e-8)
        slow = dense_marginal_variances(tree, worlds.SCHEMA, covariance, index, name)
        fast = marginal.std_errors(np.arange(tree.sizes[index])) ** 2
        np.testing.assert_allclose(fast, slow, rtol=1e-8, atol=1e-8)
        exact = marginal.std_errors(np.arange(tree.sizes[index])) == 0
        assert (marginal.centre[exact] == np.rint(marginal.centre[exact])).all()


EXTREME = {
    "a total next to exact": [
        {"total": 1e-9, "detailed": 1e12},
        {"total": 1e-9, "two * b": 1.0, "detailed": 1e9},
    ],
    "a recode next to exact": [
        {"two": 1e-9, "detailed": 1.0},
        {"two": 1e-9, "a": 1e9, "detailed": 1e3},
    ],
    "an attribute next to exact": [{"detailed": 1.0}, {"total": 1e9, "a": 1e-9, "detailed": 1e3}],
}
THREE = Hierarchy.from_paths([("r", name) for name in "abc"])
TWO_BY_THREE = {"a": list("123"), "b": ["x", "y"]}
RECODES = {
    "two": Recode("a", {"l": ["1"], "m": ["2", "3"]}),
    "odd": Recode("a", {"o": ["1", "3"], "e": ["2"]}),
}


def large_counts(schema, measured, rng):
    """Counts of a hundred million with noise of any size."""
    truth = THREE.sum_up(rng.integers(0, 10**8, (3, schema.n_cells)))
    answers = []
    for level, queries in enumerate(measured):
        exact = {name: parse_query(schema, name).answer(truth[level]) for name in queries}
        answers.append(
            {
                name: exact[name] + np.rint(rng.normal(0, v**0.5, exact[name].shape)).astype(int)
                for name, v in queries.items()
            }
        )
    return EvidenceInMemory(THREE, schema, measured, answers)


def compare_exactly(schema, measured, names):
    """By level and query: centres and standard errors, fast and in fractions."""
    evidence = large_counts(schema, measured, np.random.default_rng(0))
    found = estimate_gls(evidence, marginals=[(lv, q) for lv in THREE.level_names for q in names])
    exact = exact_histogram_gls(THREE, schema, measured, evidence.answers)
    for (level, name), marginal in found.items():
        index = THREE.index(level)
        centre, variance = exact_marginal(THREE, schema, exact, index, name)
        apart = (marginal.centre.astype(object) - centre).astype(float)
        fast = marginal.std_errors(np.arange(THREE.sizes[index]))
        yield apart, fast, np.sqrt(variance.astype(float))


@pytest.mark.parametrize("measured", EXTREME.values(), ids=EXTREME)
def test_variances_of_any_size_keep_all_digits(measured):
    schema = Schema(TWO_BY_THREE, {"two": RECODES["two"]})
    for apart, fast, slow in compare_exactly(schema, measured, ["total", "two", "a", "detailed"]):
        assert np.abs(apart).max() < 1e-5
        np.testing.assert_allclose(fast, slow, rtol=1e-12)


@pytest.mark.parametrize("measured", EXTREME.values(), ids=EXTREME)
def test_errors_are_not_understated_where_recodes_are_not_nested(measured):
    schema = Schema(TWO_BY_THREE, RECODES)
    for apart, fast, slow in compare_exactly(schema, measured, ["total", "two", "odd", "detailed"]):
        assert (fast >= slow * (1 - 1e-9)).all()
        assert (np.abs(apart) <= 5 * fast).all()


def test_what_is_not_determined_has_infinite_error():
    measured = [{"detailed": 1.0}, {"a": 1.0}, {"a": 1.0}, {"three": 1.0, "b": 1.0}]
    requests = [("block", n) for n in ("total", "three", "b", "a", "two * b")] + [("nation", "a")]
    errors = marginal_errors(worlds.TREE, worlds.SCHEMA, measured, requests)
    finite = {request: np.isfinite(e.std_errors).all() for request, e in errors.items()}
    assert finite == {
        ("block", "total"): True,
        ("block", "three"): True,
        ("block", "b"): True,
        ("block", "a"): False,
        ("block", "two * b"): False,
        ("nation", "a"): True,
    }


def test_an_only_child_knows_what_its_parent_knows():
    tree = Hierarchy.from_paths([("r", "a", "b")])
    errors = marginal_errors(
        tree, worlds.SCHEMA, [{"detailed": 4.0}, {}, {}], [("level_2", "detailed")]
    )
    np.testing.assert_allclose(errors["level_2", "detailed"].std_errors, 2.0)


def test_predicted_errors_match_those_of_many_runs():
    measured = [{"total": 1.0}, {"three": 2.0}, {"b": 1.0}, {"detailed": 2.0}]
    rng = np.random.default_rng(7)
    misses = []
    request = ("county", "two * b")
    for _ in range(150):
        truth, evidence = worlds.evidence(worlds.TREE, measured, rng, whole=False)
        covariances = TreeCovariances.of(worlds.TREE, worlds.SCHEMA.shape, QUERIES, measured)
        n = worlds.finals_by_level(BestLinear(evidence, covariances), 2)[2]
        misses.append(QUERIES[request[1]].answer(n.T - truth[2]))
    errors = marginal_errors(worlds.TREE, worlds.SCHEMA, measured, [request])[request]
    ratio = np.square(misses).mean() / np.square(errors.rows(0, worlds.TREE.sizes[2])).mean()
    assert abs(ratio - 1) < 0.1  # 150 x 6 x 6 squares: the deviation is below 3 %


def test_recodes_that_are_too_fine_are_refused():
    wide = [str(i) for i in range(1200)]
    schema = Schema(
        {"a": wide}, {"most": Recode("a", {c: [c] for c in wide[2:]} | {"r": wide[:2]})}
    )
    with pytest.raises(StructureError, match="coarser recodes"):
        Algebra.of(schema.shape, [parse_query(schema, "most")])
