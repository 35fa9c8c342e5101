"""`verify --ledger`: the measurements and the cost are those that the ledger paid for."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import flow_worlds
import size_worlds
import spine_worlds
import trellis
from histogram_release_worlds import write_histogram_world
from measuring import reestimate
from trellis.cli.app import app
from trellis.errors import LedgerError
from trellis.verify import verify_run
from trellis.workflow.confidential.measuring import folder_digest
from trellis.workflow.progress import Silent
from trellis.workflow.public.run_folder import RunFolder
from worlds import write_world


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("paid")
    trellis.run(trellis.Spec.load(write_world(folder)), folder / "run")
    return folder


@pytest.fixture
def world(finished, tmp_path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "w"))


def problems(world: Path) -> tuple[str, ...]:
    findings = verify_run(world / "run", world / "ledger.sqlite")
    return {finding.check: finding.problems for finding in findings}["ledger"]


def histogram(folder: Path):
    return trellis.run(trellis.Spec.load(write_histogram_world(folder)), folder / "run")


@pytest.mark.parametrize(
    "release",
    [flow_worlds.release_into, size_worlds.release_into, spine_worlds.release, histogram],
    ids=["flows", "group sizes", "a spine", "histogram"],
)
def test_every_kind_agrees_with_its_ledger(tmp_path, release):
    release(tmp_path)
    found = verify_run(tmp_path / "run", tmp_path / "ledger.sqlite")
    assert found[-1].check == "ledger"
    assert [f.problems for f in found if f.problems] == []


def test_another_method_has_the_same_charge_and_the_same_measurements(world):
    reestimate(RunFolder(world / "run"), "gls", world / "other", Silent())
    shutil.rmtree(world / "run")
    (world / "other").rename(world / "run")
    assert problems(world) == ()


def test_measurements_replaced_by_the_truth_are_found(world):
    path = next((world / "run" / "measurements").rglob("*.parquet"))
    table = pq.ParquetFile(path).read()
    values = pa.array(np.full(len(table), 17, dtype=np.int64))
    pq.write_table(table.set_column(table.column_names.index("value"), "value", values), path)
    assert problems(world) == ("the measurements are not those that were paid for",)


def test_the_digest_is_that_of_the_ledger_whatever_the_names(tmp_path):
    """Two pieces of code, one order of files."""
    from trellis.verify.files.run_files import RunFiles
    from trellis.verify.ledger import measurements_digest

    for name in ("level=a/query=x.parquet", "level=a-b/part-10.parquet", "level=a/b.parquet",
                 "level=A/x.parquet", "level=é/x.parquet", "level=a b/x.parquet"):  # fmt: skip
        path = tmp_path / "measurements" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    assert measurements_digest(RunFiles(tmp_path)) == folder_digest(tmp_path / "measurements")


def plan_with(change):
    def edit(world: Path) -> None:
        path = world / "run" / "plan.json"
        plan = json.loads(path.read_text())
        change(plan)
        path.write_text(json.dumps(plan))

    return edit


def swap(plan: dict) -> None:
    first, second = plan["queries"][-2:]
    first["noise"], second["noise"] = {**first["noise"], "parameter": "7"}, first["noise"]


def other_run(world: Path) -> None:
    path = world / "run" / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"run_id": "0" * 32}))


def more_noise(plan: dict) -> None:
    for q in plan["queries"]:
        if q["noise"] is not None:
            q["noise"]["parameter"] = "12345"


FORGERIES = {
    "another run": (other_run, "the ledger holds no charge of this run"),
    "another unit": (
        plan_with(lambda p: p["protection"].update(unit="household")), "another unit"),
    "another relation": (
        plan_with(lambda p: p["protection"].update(neighbours="add_remove")), "another neighbours"),
    "a smaller bound": (
        plan_with(lambda p: p["protection"].update(max_contribution=2)), "max_contribution"),
    "another data set": (plan_with(lambda p: p.update(dataset="x")), "another data set"),
    "another cost": (plan_with(more_noise), "and the ledger was charged 1"),
    "other noise": (plan_with(swap), "other noise"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_a_plan_that_the_ledger_does_not_have_is_found(world, name):
    forge, message = FORGERIES[name]
    forge(world)
    assert any(message in problem for problem in problems(world)), problems(world)


def test_a_charge_without_measurements_is_said(world):
    import sqlite3

    with sqlite3.connect(world / "ledger.sqlite") as db:
        db.execute("UPDATE charge SET digest = NULL")
    assert problems(world)[0].startswith("the ledger holds no digest")


def test_the_command(world):
    runner = CliRunner()
    ok = runner.invoke(
        app, ["verify", str(world / "run"), "--ledger", str(world / "ledger.sqlite")]
    )
    assert ok.exit_code == 0
    assert "The ledger holds the charge of this plan" in ok.stdout
    gone = runner.invoke(app, ["verify", str(world / "run"), "--ledger", str(world / "gone")])
    assert gone.exit_code == 2
    assert "There is no ledger at" in gone.stderr
    assert not (world / "gone").exists()
    with pytest.raises(LedgerError):
        verify_run(world / "run", world / "spec.yaml")
