"""Verification of group sizes notices every planted corruption, with hashes made good."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from forging import fit_manifest
from size_worlds import release_into
from trellis.verify import verify_run
from verify.test_verify_run import broken, edit_json, edit_table, first

TOWN, STATISTICS = "release/town.parquet", "release/statistics/town.parquet"
NOISY = "measurements/level=town/query=cumulative.parquet"


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    return release_into(tmp_path_factory.mktemp("sizes")).path


@pytest.fixture
def run(finished, tmp_path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def swapped(values):
    """Two sizes of one area exchanged so that one falls below zero and the sum stays."""
    return [values[0] + 1 + values[1], -1, *values[2:]]


def less_noise(plan):
    plan["queries"][-1]["noise"]["parameter"] = "1"


def edit_csv(run: Path) -> None:
    path = run / "release" / "statistics" / "town.csv"
    lines = path.read_text().splitlines()
    lines[1] = lines[1].replace(",3,", ",4,", 1)
    path.write_text("\n".join(lines) + "\n")


CORRUPTIONS = {
    "falling cumulative counts": ("monotone", edit_table(TOWN, "count", swapped)),
    "an area with another number of groups": (
        "monotone", edit_table(TOWN, "count", first(lambda v: v + 1))),
    "sizes that do not start at zero": (
        "monotone", edit_json("plan.json", lambda p: p["schema"].update(size=list("12345")))),
    "sums": ("sums", edit_table(TOWN, "count", first(lambda v: v + 1))),
    "exact groups": (
        "invariants",
        edit_table("measurements/level=town/query=total.parquet", "value", first(lambda v: v + 1))),
    "another statistic": ("statistics", edit_table(STATISTICS, "value", first(lambda v: v + 1))),
    "statistic outside its interval": (
        "statistics", edit_table(STATISTICS, "upper", lambda v: [v[0], -1.0, *v[2:]])),
    "statistics of another area": (
        "statistics", edit_table(STATISTICS, "geocode", first(lambda _: "x"))),
    "statistics under another name": (
        "statistics", edit_table(STATISTICS, "statistic", first(lambda _: "x"))),
    "statistics lost": ("statistics", lambda run: (run / STATISTICS).unlink()),
    "statistics as CSV": ("csv", edit_csv),
    "less noise than paid for": ("budget", edit_json("plan.json", less_noise)),
    "a smaller bound on quantities": (
        "privacy", edit_json("plan.json", lambda p: p["queries"][-1].update(max_quantity=2))),
    "another mechanism": (
        "identity", edit_json("plan.json", lambda p: p.update(method="cumulative_exact"))),
    "measurement of other sizes": (
        "measurements", edit_table(NOISY, "size", first(lambda _: "9"))),
}  # fmt: skip


def test_intact_run_keeps_all_promises(run):
    assert broken(run) == set()


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_forged_content_is_noticed_although_the_hashes_agree(run, name):
    check, corrupt = CORRUPTIONS[name]
    corrupt(run)
    fit_manifest(run)
    found = broken(run)
    assert check in found
    assert "hashes" not in found


def test_promises_of_sizes_are_among_those_checked(run):
    checks = {finding.check for finding in verify_run(run)}
    assert {"monotone", "statistics"} <= checks


def test_the_larger_cost_of_a_replaced_record_is_checked(tmp_path):
    """Noise for squared L2 four, where the histogram under `replace` moves by six."""
    privacy = {"unit": "person", "neighbours": "replace", "max_contribution": 1,
               "mechanism": "discrete_gaussian", "budget": {"rho": 1},
               "shares": "uniform"}  # fmt: skip
    run = release_into(tmp_path, estimate__method="histogram_exact", privacy=privacy).path
    assert broken(run) == set()

    def cheap(plan):
        for query in plan["queries"]:
            if query["noise"] is not None:
                query["noise"]["parameter"] = str(6)  # 3 levels * 4 / 2

    edit_json("plan.json", cheap)(run)
    fit_manifest(run)
    assert "budget" in broken(run)


def test_cheap_noise_for_epsilon_and_delta_is_noticed(tmp_path):
    privacy = {"unit": "person", "neighbours": "replace", "max_contribution": 2,
               "mechanism": "discrete_gaussian", "budget": {"epsilon": 1, "delta": "1e-6"},
               "shares": "uniform"}  # fmt: skip
    run = release_into(tmp_path, estimate__method="histogram_exact", privacy=privacy).path
    assert broken(run) == set()

    def cheap(plan):
        for query in plan["queries"]:
            if query["noise"] is not None:
                noise = float(eval(query["noise"]["parameter"]))
                query["noise"]["parameter"] = str(int(0.9 * noise))

    edit_json("plan.json", cheap)(run)
    fit_manifest(run)
    assert "budget" in broken(run)


def test_statistics_are_recomputed_by_the_textbook():
    from trellis.verify.group_sizes.tables import NAMES, _statistics

    counts = np.array([2, 3, 0, 1])  # sizes 0 0 1 1 1 3
    found = dict(zip(NAMES, _statistics(counts, 6), strict=True))
    sizes = np.array([0, 0, 1, 1, 1, 3])
    gini = np.abs(sizes[:, None] - sizes).sum() / (2 * 36 * sizes.mean())
    assert found == pytest.approx(
        {"groups": 6, "share_of_size_1": 0.5, "mean_size": 1, "quantile_10": 0, "quantile_25": 0,
         "median": 1, "quantile_75": 1, "quantile_90": 3, "gini": gini}
    )  # fmt: skip
