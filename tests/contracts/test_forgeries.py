"""Contract: whoever changes a finished run is noticed, whatever its kind.

A release of each kind is forged in one place at a time. The manifest is made to fit, as a forger
would, and verification must find more than before.
"""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trellis
from forging import edit_json, fit_manifest
from kinds import WITH_TOYS
from kinds.world import RHO
from trellis.verify import verify_run


def change_column(path: Path, column: str, change) -> None:
    """The first number of a column becomes another."""
    table = pq.ParquetFile(path).read()
    values = table[column].to_numpy(zero_copy_only=False).copy()
    values[0] = change(values[0])
    new = pa.array(values, table.schema.field(column).type)
    place = table.column_names.index(column)
    pq.write_table(table.set_column(place, table.schema.field(column), new), path)


def tables(run: Path, part: str, column: str) -> list[Path]:
    """Those that have rows and a column."""
    there = sorted((run / part).rglob("*.parquet"))
    return [p for p in there if pq.read_metadata(p).num_rows and column in pq.read_schema(p).names]


def forge_count(run):
    change_column(tables(run, "release", "count")[0], "count", lambda x: x + 1)


def forge_measurement(run):
    change_column(tables(run, "measurements", "variance")[-1], "variance", lambda x: x + 1)


def forge_noise(run):
    def halve(plan):
        noise = next(q["noise"] for q in plan["queries"] if q["noise"])
        noise["parameter"] = str(10**6)

    edit_json(run / "plan.json", halve)


def forge_budget(run):
    edit_json(run / "plan.json", lambda plan: plan.update(budget={"rho": "1/100"}))


def forge_price(run):
    """The noise is said to be for a table that moves less, or more."""

    def price(plan):
        query = next(q for q in plan["queries"] if q["noise"])
        query["table"] = "grand_total" if query["table"] != "grand_total" else "partition"

    edit_json(run / "plan.json", price)


def forge_unit(run):
    edit_json(run / "plan.json", lambda plan: plan["protection"].update(max_contribution=7))


def forge_statement(run):
    edit_json(run / "privacy.json", lambda record: record.update(rho="1/1000"))


def forge_guarantee(run):
    edit_json(run / "privacy.json", lambda record: record.update(guarantee=["Nothing to fear."]))


def forge_spec(run):
    text = (run / "spec.yaml").read_text()
    (run / "spec.yaml").write_text(text.replace("replace", "add_remove"))


def forge_csv(run):
    path = next((run / "release").rglob("*.csv"))
    path.write_text(path.read_text().replace("\n", "\nx", 2))


def forge_stranger(run):
    (run / "release" / "extra.csv").write_text("geocode,count\n")


def forge_area(run):
    path = run / "hierarchy.parquet"
    table = pq.ParquetFile(path).read()
    codes = [f"{code}?" for code in table["code"].to_pylist()]
    field = table.schema.field("code")
    place = table.column_names.index("code")
    pq.write_table(table.set_column(place, field, pa.array(codes).cast(field.type)), path)


FORGERIES = {
    make.__name__: make
    for make in (
        forge_count, forge_measurement, forge_noise, forge_budget, forge_price, forge_unit,
        forge_statement, forge_guarantee, forge_spec, forge_csv, forge_stranger, forge_area,
    )
}  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One release of each kind."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        for kind, world in WITH_TOYS.items():
            world.register(patch)
            folder = tmp_path_factory.mktemp(kind)
            spec = trellis.Spec.load(world.write(folder, **RHO))
            found[kind] = trellis.run(spec, folder / "run").path
    return found


def problems(run: Path) -> set[str]:
    return {problem for finding in verify_run(run) for problem in finding.problems}


honest = cache(problems)


@pytest.mark.parametrize("kind", WITH_TOYS)
def test_an_honest_run_holds(runs, kind):
    assert bool(honest(runs[kind])) == (kind == "means")  # whose price it does not know


KNOWN = ("means", "forge_statement")
"""Verification does not know the price of the toy, so that an honest statement is wrong to it."""
PAIRS = [(kind, name) for kind in WITH_TOYS for name in FORGERIES if (kind, name) != KNOWN]


@pytest.mark.parametrize(("kind", "forgery"), PAIRS)
def test_a_forgery_is_noticed(runs, tmp_path, kind, forgery):
    run = shutil.copytree(runs[kind], tmp_path / "run")
    FORGERIES[forgery](run)
    fit_manifest(run)
    assert problems(run) - honest(runs[kind])


def test_a_copy_is_no_forgery(runs, tmp_path):
    run = shutil.copytree(runs["counts"], tmp_path / "run")
    fit_manifest(run)
    assert problems(run) == set()
