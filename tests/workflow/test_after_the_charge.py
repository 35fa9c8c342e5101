"""What can only fail is refused before anything is charged (a hostile audit's findings)."""

from fractions import Fraction

import pytest

import size_worlds
import trellis
from histogram_release_worlds import problems, write_histogram_world
from trellis.errors import SpecError
from trellis.model.plans.agreement import agreed_cost
from trellis.privacy.budget import Budget
from worlds import AREAS, SPEC, write_world

LONG = "a" * 79


def test_names_that_no_file_can_have_are_refused(tmp_path):
    names = [f"{LONG[:-1]}{i}" for i in range(4)]
    people = f"town,{','.join(names)}\na1,0,0,0,0\n"
    query = " * ".join(names[:3])
    spec = write_histogram_world(
        tmp_path,
        people,
        schema={name: ["0", "1"] for name in names},
        recodes={},
        data={"source": "people.csv", "area": "town"},
        strategy={"default": {query: "1/2", "detailed": "1/2"}},
        output={"tables": {"default": ["total"]}},
    )
    with pytest.raises(SpecError, match="shorter names"):
        trellis.run(trellis.Spec.load(spec))
    assert not (tmp_path / "ledger.sqlite").exists()


def test_names_are_measured_in_bytes_and_files_are_not_levels(tmp_path):
    for name, words in (("州" * 70, "bytes"), ("town.parquet", "named like a file")):
        folder = tmp_path / words
        areas = AREAS.replace("town", name, 1)
        columns = [name if c == "town" else c for c in SPEC["hierarchy"]["columns"]]
        spec = write_world(folder, areas, hierarchy__columns=columns)
        with pytest.raises(SpecError, match=words):
            trellis.plan(trellis.Spec.load(spec))


@pytest.mark.parametrize(
    ("mechanism", "budget"),
    [
        ("discrete_gaussian", {"rho": 1000}),
        ("discrete_laplace", {"epsilon": 1000}),
        ("discrete_gaussian", {"epsilon": 1000, "delta": "1/100"}),
    ],
)
def test_counts_with_next_to_no_noise_are_released(tmp_path, mechanism, budget):
    spec = write_world(tmp_path, privacy__mechanism=mechanism, privacy__budget=budget)
    run = trellis.run(trellis.Spec.load(spec))
    assert problems(run.path) == {}
    assert all(row["std_error"] < 1e-3 for row in run.table("town").to_pylist())


def test_shares_too_uneven_for_a_fit_of_group_sizes_are_refused(tmp_path):
    tiny = Fraction(1, 10**15)
    shares = {"nation": str(tiny), "state": "1/2", "town": str(Fraction(1, 2) - tiny)}
    spec = size_worlds.spec_in(tmp_path, privacy__shares=shares)
    with pytest.raises(SpecError, match="weights"):
        trellis.plan(spec, hierarchy=size_worlds.AREAS)


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("mechanism", ["cumulative_joint", "histogram_exact"])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(1, 1000)])
def test_a_small_epsilon_with_a_large_delta_is_calibrated_closely(mechanism, m, epsilon):
    budget = Budget(epsilon=epsilon, delta=Fraction(1, 100))
    plan = size_worlds.sizes_plan(budget=budget, method=mechanism, max_contribution=m)
    assert agreed_cost(plan) == plan.privacy
