"""Margins of histograms use exact totals, zeros and bounds that the records keep; no others."""

import shutil

import numpy as np
import pytest

import trellis
from histogram_release_worlds import problems, rewrite, write_histogram_world

TABLES = ["total", "sex", "adult * sex", "age", "detailed"]
FACTS = {
    "privacy__budget": {"rho": "1/20"},
    "unprotected": {"totals": ["town"]},
    "output": {"tables": {"default": TABLES}},
}
RULES = {
    "structural_zeros": ["age = 0 and sex = f"],
    "constraints": [
        {
            "name": "homes",
            "source": "facilities.csv",
            "level": "town",
            "area": "town",
            "query": "age",
            "facilities": "homes",
            "open_to_all": ["1", "2"],
        }
    ],
}
TOTALS = {"nation": {"r": 58}, "state": {"a": 28, "b": 25, "c": 5}}
TOTALS["town"] = {"a1": 28, "a2": 0, "b1": 25}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("facts")
    return trellis.run(trellis.Spec.load(write_histogram_world(folder, **FACTS, **RULES)))


def rows(release, level, query):
    return release.table(level, query).to_pylist()


def is_exact(row, value):
    return (row["std_error"], row["lower"], row["upper"], row["count"]) == (0, value, value, value)


def test_no_interval_reaches_above_an_exact_total(finished):
    assert problems(finished.path) == {}
    for level, totals in TOTALS.items():
        for query in TABLES:
            for row in rows(finished, level, query):
                assert 0 <= row["lower"] <= row["count"] <= row["upper"] <= totals[row["geocode"]]


def test_what_facts_fix_has_no_error(finished):
    """Exact totals, nobody in a2, girls nowhere, and nobody of 0 or 3 where they have no home."""
    for level, totals in TOTALS.items():
        assert all(is_exact(r, totals[r["geocode"]]) for r in rows(finished, level, "total"))
        girls = [
            r for r in rows(finished, level, "adult * sex") if (r["adult"], r["sex"]) == ("no", "f")
        ]
        assert all(is_exact(r, 0) for r in girls)
    for query in TABLES:
        assert all(is_exact(r, 0) for r in rows(finished, "town", query) if r["geocode"] == "a2")
    homeless = [
        r for r in rows(finished, "state", "age") if r["geocode"] in "bc" and r["age"] == "0"
    ]
    assert len(homeless) == 2
    assert all(is_exact(r, 0) for r in homeless)
    left = [r for r in rows(finished, "town", "detailed") if r["geocode"] == "b1"]
    assert {(r["age"], r["sex"]) for r in left if r["std_error"] == 0} == {("0", "f"), ("0", "m")}


def test_facilities_ask_for_someone(finished):
    (row,) = [r for r in rows(finished, "town", "age") if (r["geocode"], r["age"]) == ("b1", "3")]
    assert row["lower"] >= 3


def test_the_linear_method_knows_who_is_nowhere(tmp_path):
    spec = write_histogram_world(tmp_path, **FACTS | {"estimate": {"method": "gls"}})
    made = trellis.run(trellis.Spec.load(spec))
    assert problems(made.path) == {}
    for query in TABLES:
        for row in rows(made, "town", query):
            if row["geocode"] == "a2":
                assert is_exact(row, 0)
            assert row["upper"] <= max(TOTALS["town"][row["geocode"]], np.ceil(row["count"]))


def test_bounds_on_the_output_are_not_used(tmp_path):
    rules = {
        "structural_zeros": {"binds": "output", "rules": RULES["structural_zeros"]},
        "constraints": [RULES["constraints"][0] | {"binds": "output"}],
    }
    facts = {k: v for k, v in FACTS.items() if k != "unprotected"}
    made = trellis.run(trellis.Spec.load(write_histogram_world(tmp_path, **facts, **rules)))
    assert problems(made.path) == {}
    found = rows(made, "town", "detailed")
    assert all(row["std_error"] > 0 for row in found)
    nobody = [row for row in found if (row["geocode"], row["age"]) in (("a2", "0"), ("b1", "0"))]
    assert all(row["count"] == 0 for row in nobody)
    assert any(row["upper"] > 0 for row in nobody)


# -- forgers --------------------------------------------------------------------------------------


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished.path, tmp_path / "run")


def forged(values, row, value):
    return [value if i == row else v for i, v in enumerate(values)]


@pytest.mark.parametrize(
    ("row", "end", "value"),
    [
        (0, "upper", 29),  # above the total of a1
        (2, "lower", -1),
        (4, "upper", 1),  # nobody is in a2
        (8, "upper", 2),  # nor is anyone of age 0 in b1
        (11, "lower", 0),  # where three homes are full
    ],
)
def test_an_end_outside_the_facts_is_noticed(run, row, end, value):
    rewrite(run / "release/town/age.parquet", **{end: lambda v: forged(v, row, value)})
    assert "stated confidence" in " ".join(problems(run)["histogram_margins"])


def test_an_error_where_nothing_is_uncertain_is_noticed(run):
    rewrite(run / "release/town/age.parquet", std_error=lambda v: forged(v, 8, 0.1))
    place = run / "estimates/margins/level=town/query=age,errors.parquet"
    rewrite(place, std_error=lambda v: [x or 0.1 for x in v])
    found = " ".join(problems(run)["histogram_margins"])
    assert "exact facts leave one number" in found


def test_what_binds_the_records_is_what_the_spec_says(run):
    rewrite(run / "constraints.parquet", binds=lambda v: ["output"] * len(v))
    assert "what homes binds" in " ".join(problems(run)["constraints"])
