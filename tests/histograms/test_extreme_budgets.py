"""Budgets at the ends of what a spec accepts, and splits that leave next to no noise."""

from dataclasses import replace
from fractions import Fraction

import pyarrow.parquet as pq
import pytest

import trellis
from histogram_release_worlds import histogram_plan, problems, write_histogram_world
from trellis.model.plans.query import LEAST_VARIANCE
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace

NEARLY_ALL = {"default": {"total": "999/1000", "adult": "1/2000", "detailed": "1/2000"}}
LAWS = {
    "gaussian": ("discrete_gaussian", {"rho": 1000}),
    "laplace": ("discrete_laplace", {"epsilon": 1000}),
    "hardly any": ("discrete_gaussian", {"rho": "1e-6"}),
}
MANY = (
    "town,age,sex,people\na1,0,m,200000000\na1,3,f,90000000\na2,2,f,7\nb1,3,m,50000000\nc,3,m,5\n"
)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("method", ["gls_topdown", "gls", "topdown"])
def test_any_budget_that_is_accepted_is_released(tmp_path, law, method):
    mechanism, budget = LAWS[law]
    spec = write_histogram_world(
        tmp_path,
        people=MANY,
        strategy=NEARLY_ALL,
        privacy__mechanism=mechanism,
        privacy__budget=budget,
        privacy__neighbours="add_remove",
        estimate__method=method,
        output={"tables": {"default": ["total", "adult * sex"]}},
    )
    path = trellis.run(trellis.Spec.load(spec), tmp_path / "run").path
    assert problems(path) == {}
    if law != "hardly any":
        totals = pq.read_table(path / "release" / "town" / "total.parquet").to_pydict()
        assert [round(count) for count in totals["count"]] == [290_000_000, 7, 50_000_000]
        if method != "topdown":
            assert all(0 < error < 0.01 for error in totals["std_error"])


@pytest.mark.parametrize("noise", [DiscreteGaussian("1/2000"), DiscreteLaplace("1/1000")])
def test_noise_too_small_for_a_float_does_not_make_an_answer_exact(noise):
    assert noise.variance == 0.0
    noisy = replace(histogram_plan().queries[-1], noise=noise)
    assert noisy.assumed_variance == LEAST_VARIANCE
    assert replace(noisy, noise=None).assumed_variance == 0
    assert replace(noisy, noise=DiscreteGaussian(Fraction(3))).assumed_variance == pytest.approx(3)
