import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import histogram_worlds as worlds
from oracles.histogram_gls import dense_histogram_gls, dense_marginal_variances
from strategies import hierarchies
from trellis.errors import StructureError
from trellis.estimate.histograms.best_linear import BestLinear
from trellis.estimate.histograms.estimators import (
    estimate_gls,
    estimate_gls_topdown,
    marginal_errors,
)
from trellis.model import Hierarchy, Schema
from trellis.model.queries import parse_query
from trellis.model.schema import Recode
from trellis.numerics.histograms.commuting import Algebra
from trellis.numerics.histograms.spine_variances import SpineVariances

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
    spine = SpineVariances.of(tree, worlds.SCHEMA.shape, QUERIES, measured)
    found = worlds.finals_by_level(BestLinear(evidence, spine), tree.leaf_level)
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
    for (level, name), marginal in found.marginals.items():
        cells = dense[worlds.TREE.index(level)]
        expected = QUERIES[name].answer(cells)
        np.testing.assert_allclose(marginal.centre, expected, rtol=1e-8, atol=1e-8)
    assert found.marginals["nation", "total"].errors.std_errors.max() == 0


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
        fast = marginal.errors.rows(0, tree.sizes[index]) ** 2
        np.testing.assert_allclose(fast, slow, rtol=1e-8, atol=1e-8)
        exact = marginal.errors.rows(0, tree.sizes[index]) == 0
        assert (marginal.centre[exact] == np.rint(marginal.centre[exact])).all()


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
        spine = SpineVariances.of(worlds.TREE, worlds.SCHEMA.shape, QUERIES, measured)
        n = worlds.finals_by_level(BestLinear(evidence, spine), 2)[2]
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
