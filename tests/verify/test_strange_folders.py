"""A folder that a stranger made: what no run writes is refused before it is read."""

import json
import os
import resource
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from forging import fit_manifest, write_json
from kept_runs import KINDS, unpack
from trellis.cli.app import app
from trellis.errors import RunFolderError
from trellis.verify import verify_run
from trellis.verify.files.inventory import inventory, refuse_strange
from trellis.verify.files.safe_files import Unreadable, read_json, read_yaml

METHODS = {"counts": "gls", "flows": "chebyshev", "group_sizes": "cumulative_joint",
           "histogram": "topdown", "used_histogram": "topdown"}  # fmt: skip


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("kept")
    for kind in KINDS:
        unpack(kind, folder)
    return folder


@pytest.fixture
def run(kept, tmp_path) -> Path:
    return Path(shutil.copytree(kept / "counts", tmp_path / "run"))


def invoke(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def readers(run: Path) -> list[list[object]]:
    """Commands that read a folder, apart from verify."""
    other = ["estimate", run, "--method", "gls", "--out", run.parent / "other"]
    return [other, ["report", run], ["account", run]]


def assert_refused_by_readers(run: Path, message: str) -> None:
    before = sorted(p.name for p in run.parent.iterdir())
    for command in readers(run):
        result = invoke(*command)
        assert result.exit_code == 2, (command, result.output)
        assert message in result.stderr
        assert result.stderr.count("\n") == 1
    assert sorted(p.name for p in run.parent.iterdir()) == before


# -- links and special files ----------------------------------------------------------------------


def link_a_file(run: Path) -> None:
    secret = run.parent / "secret.parquet"
    target = next((run / "measurements").rglob("*.parquet"))
    target.rename(secret)
    target.symlink_to(secret)


def link_a_folder(run: Path) -> None:
    (run / "release").rename(run.parent / "elsewhere")
    (run / "release").symlink_to(run.parent / "elsewhere")


def link_to_nothing(run: Path) -> None:
    (run / "release" / "old.csv").symlink_to(run / "gone")


def pipe(run: Path) -> None:
    (run / "spec.yaml").unlink()
    os.mkfifo(run / "spec.yaml")


def listening(run: Path) -> None:
    with socket.socket(socket.AF_UNIX) as file:
        here = Path.cwd()
        os.chdir(run)  # names of sockets are short
        try:
            file.bind("socket")
        finally:
            os.chdir(here)


@pytest.mark.parametrize("plant", [link_a_file, link_a_folder, link_to_nothing, pipe, listening])
def test_links_and_special_files_are_refused_unread(run, plant):
    plant(run)
    message = "is a link" if "link" in plant.__name__ else "is not a plain file"
    result = invoke("verify", run)
    assert result.exit_code == 2
    assert message in result.stderr
    assert_refused_by_readers(run, message)


def test_estimating_an_unfinished_folder_follows_no_link(run):
    for name in ("manifest.json", "privacy.json", "deployment.yaml"):
        (run / name).unlink()
    for name in ("estimates", "release", "report"):
        shutil.rmtree(run / name)
    link_a_file(run)
    result = invoke("estimate", run)
    assert result.exit_code == 2
    assert "is a link" in result.stderr
    assert not (run / "estimates").exists()


def test_hard_links_and_a_link_to_the_folder_itself_are_fine(run):
    twin = run.parent / "twin.md"
    os.link(run / "release" / "README.md", twin)
    (run.parent / "latest").symlink_to(run)
    assert invoke("verify", run.parent / "latest").exit_code == 0
    assert invoke("account", run.parent / "latest").exit_code == 0


# -- files, columns, metadata ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_kept_folders_have_nothing_strange(kept, tmp_path, kind):
    out = tmp_path / "other"
    result = invoke("estimate", kept / kind, "--method", METHODS[kind], "--out", out)
    assert result.exit_code == 0, result.output
    assert [f.problems for f in verify_run(out) if f.problems] == []


@pytest.mark.parametrize(
    "name",
    ["release/manifest.json", "notes.txt", "measurements/level=block/notes.parquet",
     "release/.hidden", "estimates/level=planet.parquet", "constraints.parquet"],
)  # fmt: skip
def test_files_that_no_run_of_the_kind_writes_are_found(run, name):
    (run / name).write_text("true count: 17")
    fit_manifest(run)
    findings = {f.check: f.problems for f in verify_run(run) if f.problems}
    assert findings["inventory"] == (f"{name} is not a file of a run of this kind",)
    assert_refused_by_readers(run, f"{name} is not a file of a run of this kind")


@pytest.mark.parametrize("kind", KINDS)
def test_an_unlisted_manifest_in_a_subfolder_is_found(kept, tmp_path, kind):
    run = Path(shutil.copytree(kept / kind, tmp_path / "run"))
    (run / "release" / "manifest.json").write_text("{}")
    broken = {f.check for f in verify_run(run) if f.problems}
    assert broken == {"hashes", "inventory"}


@pytest.mark.parametrize("kind", KINDS)
def test_no_file_may_have_another_column(kept, tmp_path, kind):
    run = Path(shutil.copytree(kept / kind, tmp_path / "run"))
    for path in sorted(run.rglob("*.parquet")):
        before, name = path.read_bytes(), path.relative_to(run).as_posix()
        table = pq.ParquetFile(path).read()
        pq.write_table(table.append_column("truth", pa.array([17] * len(table))), path)
        with pytest.raises(RunFolderError, match=f"{name} has a column 'truth' that was not"):
            refuse_strange(run)
        path.write_bytes(before)
    refuse_strange(run)


def test_a_column_of_true_counts_is_found(run):
    path = next((run / "measurements").rglob("*.parquet"))
    table = pq.ParquetFile(path).read()
    pq.write_table(table.append_column("truth", pa.array([17] * len(table))), path)
    fit_manifest(run)
    findings = {f.check: f.problems for f in verify_run(run) if f.problems}
    assert "has a column 'truth' that was not promised" in findings["inventory"][0]
    assert "measurements" in findings
    assert_refused_by_readers(run, "'truth'")


def with_file_metadata(table: pa.Table) -> pa.Table:
    return table.replace_schema_metadata({**(table.schema.metadata or {}), b"truth": b"17"})


def with_column_metadata(table: pa.Table) -> pa.Table:
    column = table.schema.field(0).with_metadata({b"truth": b"17"})
    return table.cast(table.schema.set(0, column))


@pytest.mark.parametrize("hide", [with_file_metadata, with_column_metadata])
@pytest.mark.parametrize("name", ["hierarchy.parquet", "release/county.parquet"])
def test_nothing_hides_in_metadata(run, name, hide):
    table = pq.ParquetFile(run / name).read()
    pq.write_table(hide(table), run / name)
    fit_manifest(run)
    found = {f.check: f.problems for f in verify_run(run)}["inventory"]
    assert f"{name} has metadata that no run writes" in found
    assert_refused_by_readers(run, "metadata that no run writes")


def test_levels_in_the_metadata_are_those_of_the_plan(run):
    table = pq.ParquetFile(run / "hierarchy.parquet").read()
    names = json.dumps(["true count: 17"] * 5)
    pq.write_table(table.replace_schema_metadata({"trellis.levels": names}),
                   run / "hierarchy.parquet")  # fmt: skip
    assert_refused_by_readers(run, "hierarchy.parquet names other levels than plan.json")


def test_columns_have_the_promised_kind_of_values(run):
    path = next((run / "measurements").rglob("*.parquet"))
    table = pq.ParquetFile(path).read()
    at = table.column_names.index("value")
    real = table["value"].cast(pa.float64())
    pq.write_table(table.set_column(at, "value", real), path)
    assert_refused_by_readers(run, "has values of value that are not whole numbers")


# -- memory and time ------------------------------------------------------------------------------

ALIASES = "a: &a [x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 8)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


def edit_plan(run: Path, change) -> None:
    plan = json.loads((run / "plan.json").read_text())
    change(plan)
    write_json(run / "plan.json", plan)


def huge(name: str):
    def grow(run: Path) -> None:
        with (run / name).open("ab") as file:
            file.truncate(4_000_000_000)  # a hole: no room on disk is taken

    return grow


def many_rows(run: Path) -> None:
    """A tree of two million nodes in a file of a few kilobytes, with a plan to match."""
    rows = 2_000_000
    edit_plan(run, lambda p: p["levels"][-1].update(nodes=rows - 12))
    old = pq.read_schema(run / "hierarchy.parquet")
    values = {"code": "x", "passes_through": False}
    columns = [pa.repeat(pa.scalar(values.get(f.name, 0), f.type), rows) for f in old]
    pq.write_table(pa.Table.from_arrays(columns, schema=old), run / "hierarchy.parquet",
                   compression="zstd")  # fmt: skip


BOMBS = {
    "aliases": (lambda run: (run / "spec.yaml").write_text(ALIASES), "anchors or aliases"),
    "deep YAML": (lambda run: (run / "spec.yaml").write_text("a: " + "[" * 5000 + "]" * 5000),
                  "deeper entries"),
    "long YAML": (lambda run: (run / "spec.yaml").write_text("a: [" + "a," * 3000 + "]"),
                  "more or deeper entries"),
    "large YAML": (huge("spec.yaml"), "larger than"),
    "large JSON": (huge("plan.json"), "larger than"),
    "deep JSON": (lambda run: (run / "plan.json").write_text("[" * 100_000), "plan.json"),
    "large footer": (huge("hierarchy.parquet"), "hierarchy.parquet is damaged"),
    "endless number": (
        lambda run: edit_plan(run, lambda p: p["budget"].update(rho="1e999999999")),
        "no exact number in rho"),
    "cells": (
        lambda run: edit_plan(run, lambda p: p.update(
            schema={name: list(map(str, range(1000))) for name in "abcd"})),
        "cells for each area"),
    "rows": (many_rows, "rows"),
    "names that lead elsewhere": (
        lambda run: edit_plan(run, lambda p: p["areas"][0].update(name="../../../etc")),
        "cannot be that of a file"),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_what_would_fill_the_memory_is_not_read(run, name, monkeypatch):
    monkeypatch.setattr(
        "trellis.verify.files.safe_files.MOST_YAML_NODES", 2000
    )  # the rest takes seconds
    plant, message = BOMBS[name]
    plant(run)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert_refused_by_readers(run, message)
    if "large" not in name:  # hashing a large file takes time, and no memory
        result = invoke("verify", run)
        assert result.exit_code == 1
        assert message in result.stdout
    if name == "rows":
        assert "hierarchy.parquet has more rows than areas with codes" in result.stdout
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 700_000, f"{grown / 1e6:.1f} GB"


def test_a_stranger_cannot_make_verify_hang_or_fill_the_memory(run):
    """In a process of its own: what the whole command takes.

    The kernel counts the memory of this process, which forked it, into `ru_maxrss`; not here.
    """
    (run / "spec.yaml").write_text(ALIASES)
    code = (
        "import atexit, pathlib; from trellis.cli import main; "
        "status = pathlib.Path('/proc/self/status'); "
        "atexit.register(lambda: print(status.read_text())); main()"
    )
    done = subprocess.run([sys.executable, "-c", code, "verify", str(run)], timeout=60, text=True,
                          capture_output=True)  # fmt: skip
    assert done.returncode == 1
    assert "anchors or aliases" in done.stdout
    assert int(done.stdout.split("VmHWM:")[1].split()[0]) < 1_000_000  # kilobytes


# -- readers --------------------------------------------------------------------------------------


def test_any_json_value_in_a_plan_is_a_finding_and_no_traceback(run):
    plan = json.loads((run / "plan.json").read_text())
    for key in plan:
        for value in (None, [None]):
            write_json(run / "plan.json", {**plan, key: value})
            assert any(f.problems for f in verify_run(run)), (key, value)


def test_repeated_keys_and_numbers_that_are_not_exact_are_refused(tmp_path):
    (tmp_path / "plan.json").write_text('{"rho": "1", "rho": "2"}')
    with pytest.raises(Unreadable, match="damaged"):
        read_json(tmp_path, "plan.json")
    for good in ("1", "1/15", "-3/4", "0.25", "1e-10"):
        (tmp_path / "plan.json").write_text(json.dumps({"budget": {"rho": good}}))
        assert read_json(tmp_path, "plan.json")
    for bad in ("", "nan", "1e9999", "1/2/3", "9" * 3000, "1_0"):
        (tmp_path / "plan.json").write_text(json.dumps({"queries": [{"share": bad}]}))
        with pytest.raises(Unreadable, match="exact number in share"):
            read_json(tmp_path, "plan.json")
    (tmp_path / "spec.yaml").write_text("- 1")
    with pytest.raises(Unreadable, match="damaged"):
        read_yaml(tmp_path, "spec.yaml")


@pytest.mark.parametrize("kind", KINDS)
def test_the_inventory_has_every_file_of_a_run(kept, kind):
    plan = json.loads((kept / kind / "plan.json").read_text())
    known = inventory(plan)
    there = {p.relative_to(kept / kind).as_posix() for p in (kept / kind).rglob("*") if p.is_file()}
    assert there <= set(known.tables) | known.files
