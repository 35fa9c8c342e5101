"""Verification notices every planted corruption: of bytes, and of meaning with hashes made good."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import forging
import trellis
from forging import edit_footer, fit_manifest
from measuring import reestimate
from trellis.errors import RunFolderError
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from trellis.samples.demo import write_demo
from trellis.verify import verify_run
from trellis.verify.plan.price import noise_variance
from trellis.workflow.progress import Silent
from trellis.workflow.public.run_folder import RunFolder


def spec_for(folder: Path, **privacy) -> trellis.Spec:
    write_demo(folder, n_blocks=300)
    content = yaml.safe_load((folder / "spec.yaml").read_text())
    content["privacy"] |= privacy
    return trellis.Spec.parse(content, folder)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("verify")
    return trellis.run(spec_for(folder)).path


@pytest.fixture
def run(finished, tmp_path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def broken(path: Path) -> set[str]:
    return {finding.check for finding in verify_run(path) if not finding.holds}


def test_intact_run_keeps_all_promises(run):
    assert broken(run) == set()


@pytest.mark.parametrize("method", ["gls", "topdown"])
def test_other_methods_keep_their_promises(finished, tmp_path, method):
    out = reestimate(RunFolder(finished), method, tmp_path / method, Silent()).path
    assert broken(out) == set()


def test_ragged_cells_and_laplace_keep_all_promises(tmp_path):
    areas = pa.table({"region": ["r"] * 4, "town": ["a", "a", "b", "c"],
                      "block": ["a1", "a2", "b1", None]})  # fmt: skip
    data = pa.table({"place": ["a1", "a2", "b1", "c"], "x": [3, 0, 7, 9], "y": [1, 2, 3, 4]})
    content = {
        "release": "ragged", "kind": "counts", "dataset": "ragged",
        "data": {"area": "place", "cells": {"young": "x", "old": "y"}},
        "hierarchy": {"columns": ["region", "town", "block"]},
        "privacy": {"unit": "person", "neighbours": "replace", "max_contribution": 2,
                    "mechanism": "discrete_laplace", "budget": {"epsilon": 1}},
    }  # fmt: skip
    release = trellis.run(
        trellis.Spec.parse(content, tmp_path), tmp_path / "out", data=data, hierarchy=areas
    )
    assert broken(release.path) == set()
    assert release.table("block")["geocode"].to_pylist() == ["a1", "a1", "a2", "a2", "b1", "b1"]
    assert release.table("town").num_rows == 6


def test_unfinished_and_foreign_folders_are_refused(run, tmp_path):
    (run / "manifest.json").unlink()
    with pytest.raises(RunFolderError, match="not finished"):
        verify_run(run)
    with pytest.raises(RunFolderError, match="not a run folder"):
        verify_run(tmp_path)


# -- bytes ----------------------------------------------------------------------------------------


def test_every_file_is_guarded_by_the_manifest(run):
    for file in sorted(p for p in run.rglob("*") if p.is_file() and p.name != "manifest.json"):
        kept = file.read_bytes()
        file.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
        assert "hashes" in broken(run), file
        file.write_bytes(kept)
        hidden = file.rename(file.with_suffix(".gone"))
        assert "hashes" in broken(run), file
        hidden.rename(file)
    assert broken(run) == set()
    (run / "release" / "extra.csv").write_text("added later")
    assert broken(run) == {"hashes", "inventory", "data_package"}


def test_a_damaged_manifest_is_noticed(run):
    (run / "manifest.json").write_text("{")
    assert "hashes" in broken(run)


@pytest.mark.parametrize("name", ["plan.json", "privacy.json", "run.json", "spec.yaml",
                                  "hierarchy.parquet"])  # fmt: skip
@pytest.mark.parametrize("content", ["", "[]", "{}", "\x00\x01"])
def test_unreadable_files_are_findings_not_tracebacks(run, name, content):
    (run / name).write_text(content)
    fit_manifest(run)
    assert broken(run) - {"hashes"}


# -- meaning --------------------------------------------------------------------------------------


def edit_json(name: str, change):
    return lambda run: forging.edit_json(run / name, change)


def edit_table(name: str, column: str, change):
    """Change one column of a Parquet table, given and returned as a list."""

    def edit(run: Path) -> None:
        table = pq.ParquetFile(run / name).read()
        at = table.column_names.index(column)
        values = change(table[column].to_pylist())
        kind = None if any(isinstance(v, float) for v in values) else table.schema.field(at).type
        kind = None if kind is None or pa.types.is_dictionary(kind) else kind
        table = table.set_column(at, column, pa.array(values, kind))
        pq.write_table(table, run / name)
        (run / name).with_suffix(".csv").unlink(missing_ok=True)

    return edit


def first(new):
    """Replace the first entry of a list."""
    return lambda values: [new(values[0]), *values[1:]]


def both(*edits):
    def edit(run: Path) -> None:
        for one in edits:
            one(run)

    return edit


def edit_spec(run: Path) -> None:
    text = (run / "spec.yaml").read_text()
    (run / "spec.yaml").write_text(text.replace("unit: person", "unit: household"))


def swap_noise(plan: dict) -> None:
    """The sum of the costs stays, but not what each level was promised."""
    county, tract = plan["queries"][1], plan["queries"][2]
    county["noise"], tract["noise"] = tract["noise"], county["noise"]


def much_noise(plan: dict) -> None:
    for query in plan["queries"]:
        if query["noise"] is not None:
            query["noise"]["parameter"] = str(10**9)


def edit_csv(run: Path) -> None:
    path = run / "release" / "county.csv"
    head, row, *rest = path.read_text().splitlines()
    cells = row.split(",")
    cells[3] = str(int(cells[3]) + 1)
    path.write_text("\n".join([head, ",".join(cells), *rest]) + "\n")


BLOCKS, COUNTY, STATE = "release/block.parquet", "release/county.parquet", "release/state.parquet"
MEASURED = "measurements/level=county/query=total.parquet"
EXACT = "measurements/level=state/query=total.parquet"


def edit_text(name: str, old: str, new: str):
    def edit(run: Path) -> None:
        text = (run / name).read_text(encoding="utf-8")
        assert old in text
        (run / name).write_text(text.replace(old, new, 1), encoding="utf-8")

    return edit


CORRUPTIONS = {
    "another unit in the spec": ("identity", edit_spec),
    "another run id": ("identity", edit_json("manifest.json", lambda m: m.update(run_id="x"))),
    "a plan of another method": (
        "planned", edit_json("plan.json", lambda p: p.update(method="gls"))),
    "another budget": ("budget", edit_json("plan.json", lambda p: p["budget"].update(rho="2"))),
    "shares over one": (
        "budget", edit_json("plan.json", lambda p: p["queries"][1].update(share="1/2"))),
    "less noise than paid for": (
        "budget", edit_json("plan.json", lambda p: p["queries"][1]["noise"].update(parameter="1"))),
    "noise shifted between levels": (
        "budget", edit_json("plan.json", swap_noise)),
    "record of another relation": (
        "privacy", edit_json("privacy.json", lambda p: p.update(neighbours="add_remove"))),
    "record of a smaller cost": (
        "privacy", edit_json("privacy.json", lambda p: p.update(rho="1/2"))),
    "record without a guarantee": (
        "privacy", edit_json("privacy.json", lambda p: p.update(guarantee=[]))),
    "record silent on exact totals": (
        "privacy", edit_json("privacy.json", lambda p: p.update(unprotected=[]))),
    "plan for another number of areas": (
        "hierarchy", edit_json("plan.json", lambda p: p["levels"][-1].update(areas=7))),
    "code twice": (
        "hierarchy", edit_table("hierarchy.parquet", "code", lambda v: [*v[:-1], v[-2]])),
    "parent out of range": (
        "hierarchy", edit_table("hierarchy.parquet", "parent", lambda v: [*v[:-1], 999])),
    "measurement lost": ("measurements", lambda run: (run / MEASURED).unlink()),
    "measurement of other areas": (
        "measurements", edit_table(MEASURED, "geocode", first(lambda _: "00000"))),
    "measurement with fractions": (
        "measurements", edit_table(MEASURED, "value", lambda v: [x + 0.5 for x in v])),
    "measurement with another variance": (
        "measurements", edit_table(MEASURED, "variance", first(lambda v: v / 2))),
    "plan with another variance": (
        "measurements",
        edit_json("plan.json", lambda p: p["queries"][1]["noise"].update(variance=1.0))),
    "table of other areas": ("columns", edit_table(COUNTY, "geocode", first(lambda _: "00000"))),
    "table of another level": ("columns", edit_table(COUNTY, "level", first(lambda _: "state"))),
    "table of another cell": ("columns", edit_table(COUNTY, "cell", first(lambda _: "other"))),
    "negative count": ("signs", edit_table(BLOCKS, "count", first(lambda _: -1))),
    "fractional count": ("signs", edit_table(BLOCKS, "count", lambda v: [x + 0.0 for x in v])),
    "missing count": ("signs", edit_table(BLOCKS, "count", first(lambda _: None))),
    "sum off by one": ("sums", edit_table(BLOCKS, "count", first(lambda v: v + 1))),
    "count outside its interval": ("intervals", edit_table(COUNTY, "upper", first(lambda _: 0))),
    "negative standard error": ("intervals", edit_table(COUNTY, "std_error", first(lambda v: -v))),
    "missing standard error": ("intervals", edit_table(COUNTY, "std_error", first(lambda _: None))),
    "other exact total": ("invariants", edit_table(EXACT, "value", first(lambda v: v + 1))),
    "exact total not declared": (
        "invariants", edit_json("plan.json", lambda p: p.update(unprotected_totals=[]))),
    "table and estimates differ": (
        "estimates", edit_table(COUNTY, "std_error", first(lambda v: v * 2))),
    "centre off by too little to move an interval": (
        "estimates",
        edit_table("estimates/level=block.parquet", "centre", first(lambda v: v - 1e-3))),
    "another epsilon": (
        "second_opinion",
        edit_json("privacy.json", lambda p: p["epsilon_at_delta"].update({"1e-10": 9.0}))),
    "another forecast": (
        "forecast",
        edit_json("plan.json", lambda p: p["expected_standard_errors"][1].update(median=0.1))),
    "measurement that no estimate follows": (
        "linear_estimates", edit_table(MEASURED, "value", first(lambda v: v + 1))),
    "another standard error": (
        "standard_errors",
        edit_table("estimates/level=block.parquet", "std_error", first(lambda v: v * 2))),
    "estimated counts that do not add up": (
        "whole_counts",
        edit_table("estimates/level=block.parquet", "count", first(lambda v: v + 1))),
    "CSV and Parquet differ": ("csv", edit_csv),
    "a data package of another form": (
        "data_package", edit_json("release/datapackage.json", lambda p: p.update(confidence=""))),
    "a registry record of another unit": (
        "deployment", edit_text("deployment.yaml", "privacy_unit: person", "privacy_unit: home")),
    "a guide with another confidence": (
        "guide", edit_text("release/README.md", "confidence is 90 %", "confidence is 99 %")),
    "a report with another epsilon": (
        "report", edit_text("report/index.html", "-differential privacy", "-perfect privacy")),
    "a manifest with something to say": (
        "stamps", edit_json("manifest.json", lambda m: m.update(notes="true: 17"))),
    "more noise than the measurements show": ("scatter", edit_json("plan.json", much_noise)),
    "a comment in the spec": (
        "written", edit_text("spec.yaml", "kind: counts", "kind: counts # true: 17")),
    "a code that no row has as an end": (
        "values", lambda run: edit_footer(run / COUNTY, b"99001", b"17171")),
    "a file that no run writes": (
        "inventory", lambda run: (run / "release" / "notes.txt").write_text("true: 17")),
}  # fmt: skip


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_forged_content_is_noticed_although_the_hashes_agree(run, name):
    check, corrupt = CORRUPTIONS[name]
    corrupt(run)
    fit_manifest(run)
    found = broken(run)
    assert check in found
    assert "hashes" not in found


def test_every_check_has_a_corruption(run):
    checks = {finding.check for finding in verify_run(run)}
    assert checks == {check for check, _ in CORRUPTIONS.values()} | {"hashes"}


LAWS = [DiscreteGaussian(s) for s in ("0.3", 19, 21, 10**6)] + [
    DiscreteLaplace(b) for b in ("0.001", "0.2", 50)
]


@pytest.mark.parametrize("noise", LAWS, ids=str)
def test_variances_are_recomputed_independently(noise):
    found = noise_variance({"law": noise.name, "parameter": str(noise.parameter)})
    assert np.isclose(found, noise.variance, rtol=1e-9)
