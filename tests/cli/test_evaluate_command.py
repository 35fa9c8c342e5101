"""`trellis evaluate` and `trellis report`: what they write, and where they refuse to."""

import json
import os
import shutil
import stat

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import size_worlds
import spine_worlds
import trellis
from flow_worlds import write_flow_world
from trellis.cli.app import app
from trellis.samples.demo import write_demo
from trellis.verify import verify_run
from trellis.workflow.evaluation.evaluate import evaluate_run
from worlds import REMOVE, write_world

LEVELS = ["state", "county", "tract", "block_group", "block"]


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """A released state; never changed by a test."""
    folder = tmp_path_factory.mktemp("state")
    write_demo(folder, n_blocks=400)
    trellis.run(trellis.Spec.load(folder / "spec.yaml"))
    return folder


def evaluate(state, out, *more, truth="data/people.parquet"):
    return invoke(
        "evaluate", state / "runs/demo", "--truth", state / truth, "--confidential-out", out, *more
    )


def refused(result, words):
    assert result.exit_code == 2, result.output
    *stages, error = result.stderr.splitlines()
    assert error.startswith("error: ")
    assert words in error
    assert all(stage.endswith(" ...") for stage in stages)


# -- evaluate -------------------------------------------------------------------------------------


def test_tables_say_what_their_numbers_are_in(state, tmp_path):
    shown = evaluate(state, tmp_path / "out").output
    assert "against the truth, errors in records" in shown
    assert "90 % covered" in shown
    page = (tmp_path / "out" / "CONFIDENTIAL-evaluation.html").read_text(encoding="utf-8")
    assert "Errors are in records." in page
    assert "90 % intervals:" in page


def test_flows_are_compared_by_pairs(tmp_path):
    """The number beside a mean is that of the pairs it is a mean of, and is called so."""
    spec = write_flow_world(tmp_path)
    run = trellis.run(trellis.Spec.load(spec)).path
    shown = invoke("evaluate", run, "--truth", spec, "--confidential-out", tmp_path / "out")
    assert shown.exit_code == 0, shown.output
    assert "pairs" in shown.output
    assert "areas" not in shown.output
    assert "errors in trips" in shown.output
    content = json.loads((tmp_path / "out" / "CONFIDENTIAL-evaluation.json").read_text())
    assert content["counts_of"] == "trips"
    assert all(level["areas"] == level["counts"] for level in content["levels"])


@pytest.mark.parametrize("truth", ["data/people.parquet", "spec.yaml"])
def test_json_has_the_errors_of_every_level(state, tmp_path, truth):
    result = evaluate(state, tmp_path / "out", "--json", truth=truth)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["confidential"] is True
    assert [level["level"] for level in found["levels"]] == LEVELS
    for level in found["levels"]:
        assert level["mean_absolute_error"] <= level["root_mean_squared_error"]
        assert 0 <= level["coverage"] <= 1
        assert sum(size["counts"] for size in level["by_size"]) == level["counts"]
    assert found["levels"][0]["mean_absolute_error"] == 0  # the state's total is exact
    assert found["levels"][4]["root_mean_squared_error"] > 0


def test_numbers_are_those_of_the_tables(state, tmp_path):
    found = json.loads(evaluate(state, tmp_path / "out", "--json").stdout)
    people = pq.read_table(state / "data/people.parquet")["block"].to_pylist()
    rows = pq.read_table(state / "runs/demo/release/county.parquet").to_pylist()
    truth = {row["geocode"]: 0 for row in rows}
    for block in people:
        truth[block[:5]] += 1
    gaps = [row["count"] - truth[row["geocode"]] for row in rows]
    inside = [row["lower"] <= truth[row["geocode"]] <= row["upper"] for row in rows]
    county = found["levels"][1]
    assert county["mean_absolute_error"] == pytest.approx(sum(map(abs, gaps)) / len(gaps))
    assert county["coverage"] == pytest.approx(sum(inside) / len(inside))


def test_nothing_confidential_is_readable_by_others_for_a_moment(state, tmp_path, monkeypatch):
    """Not even under the hidden name that a file has until it is complete."""
    modes = []

    def watch(descriptor):
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode):
            modes.append(stat.S_IMODE(mode))

    monkeypatch.setattr(os, "fsync", watch)
    umask = os.umask(0)
    try:
        assert evaluate(state, tmp_path / "out").exit_code == 0
    finally:
        os.umask(umask)
    assert modes == [0o600] * 3


def test_everything_written_is_marked_and_private(state, tmp_path):
    out = tmp_path / "deep" / "out"
    result = evaluate(state, out)
    assert result.exit_code == 0
    assert "CONFIDENTIAL" in result.stdout
    files = sorted(out.iterdir())
    assert [path.suffix for path in files] == [".csv", ".html", ".json"]
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    for path in files:
        assert "CONFIDENTIAL" in path.name
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert "confidential" in path.read_text(encoding="utf-8").lower()
    page = next(path for path in files if path.suffix == ".html").read_text(encoding="utf-8")
    assert '<p class="banner">CONFIDENTIAL' in page
    assert "<title>CONFIDENTIAL" in page
    assert page.count("<svg") == page.count('aria-label="CONFIDENTIAL')
    lines = next(path for path in files if path.suffix == ".csv").read_text().splitlines()
    assert all(line.startswith("yes,") for line in lines[1:])


@pytest.mark.parametrize("inside", ["", "truth", "report/deep/er"])
def test_a_run_folder_is_refused_and_stays_as_it_was(state, inside):
    run = state / "runs/demo"
    before = sorted(run.rglob("*"))
    refused(evaluate(state, run / inside), "may be published")
    assert sorted(run.rglob("*")) == before


def test_a_link_into_a_run_folder_is_refused(state, tmp_path):
    (tmp_path / "link").symlink_to(state / "runs/demo")
    refused(evaluate(state, tmp_path / "link" / "x"), "may be published")


def test_a_published_copy_without_its_identity_is_refused_too(state, tmp_path):
    copy = shutil.copytree(state / "runs/demo", tmp_path / "copy")
    (copy / "run.json").unlink()
    refused(evaluate(state, copy / "x"), "may be published")


def test_other_records_are_refused(state, tmp_path):
    table = pq.read_table(state / "data/people.parquet")
    pq.write_table(table.slice(0, table.num_rows - 5), tmp_path / "fewer.parquet")
    out = tmp_path / "out"
    result = invoke("evaluate", state / "runs/demo", "--truth", tmp_path / "fewer.parquet",
                    "--confidential-out", out)  # fmt: skip
    refused(result, "another edition")
    assert not out.exists()


def test_problems_with_the_truth_quote_nothing(state, tmp_path):
    pq.write_table(pa.table({"block": ["secret-place"]}), tmp_path / "odd.parquet")
    result = invoke("evaluate", state / "runs/demo", "--truth", tmp_path / "odd.parquet",
                    "--confidential-out", tmp_path / "out")  # fmt: skip
    refused(result, "not a leaf of the hierarchy")
    assert "secret-place" not in result.output


def test_a_spec_of_something_else_is_refused(state, tmp_path):
    result = invoke("evaluate", state / "runs/demo", "--truth", write_world(tmp_path),
                    "--confidential-out", tmp_path / "out")  # fmt: skip
    refused(result, "in a different way")


def test_an_unfinished_run_is_refused(state, tmp_path):
    copy = shutil.copytree(state / "runs/demo", tmp_path / "copy")
    (copy / "manifest.json").unlink()
    result = invoke("evaluate", copy, "--truth", state / "spec.yaml",
                    "--confidential-out", tmp_path / "out")  # fmt: skip
    refused(result, "not finished")


def test_a_damaged_spec_is_reported(state, tmp_path):
    copy = shutil.copytree(state / "runs/demo", tmp_path / "copy")
    (copy / "spec.yaml").write_text("release: [")
    result = invoke("evaluate", copy, "--truth", state / "spec.yaml",
                    "--confidential-out", tmp_path / "out")  # fmt: skip
    refused(result, "damaged")


def test_several_cells_are_compared_one_by_one_and_summed(tmp_path):
    spec = write_world(
        tmp_path, people="town,men,women\na1,10,20\na2,0,3\nb1,25,1\n",
        data__count=REMOVE, data__cells={"men": "men", "women": "women"},
    )  # fmt: skip
    run = trellis.run(trellis.Spec.load(spec)).path
    result = invoke(
        "evaluate", run, "--truth", spec, "--confidential-out", tmp_path / "o", "--json"
    )
    levels = json.loads(result.stdout)["levels"]
    assert [(x["level"], x["what"]) for x in levels][:2] == [
        ("nation", "counts"),
        ("nation", "totals"),
    ]
    assert levels[1]["mean_absolute_error"] == 0


def test_methods_without_intervals_can_be_compared(tmp_path):
    spec = write_world(tmp_path, estimate={"method": "topdown"})
    run = trellis.run(trellis.Spec.load(spec)).path
    result = invoke("evaluate", run, "--truth", spec, "--confidential-out", tmp_path / "o")
    assert result.exit_code == 0, result.output


def test_group_sizes_are_compared_with_their_register(tmp_path):
    spec = size_worlds.write_size_world(tmp_path)
    run = trellis.run(trellis.Spec.load(spec)).path
    named = invoke("evaluate", run, "--truth", spec, "--confidential-out", tmp_path / "o", "--json")
    assert named.exit_code == 0, named.output
    assert json.loads(named.stdout)["levels"][0]["what"] == "counts"
    records = tmp_path / "people.csv"
    alone = invoke("evaluate", run, "--truth", records, "--confidential-out", tmp_path / "o")
    refused(alone, "give the release's spec")


def test_areas_of_interest_are_compared_too(tmp_path):
    table = spine_worlds.blocks()
    run = spine_worlds.release(tmp_path, table).path
    found = evaluate_run(run, table, tmp_path / "out")
    names = [level.level for level in found.levels]
    assert names == ["state", "county", "tract", "block_group", "block", "place", "zone"]
    place = found.levels[5]
    rows = trellis.Release(run).table("place").to_pylist()
    truth = {row["geocode"]: 0 for row in rows}
    for row in table.to_pylist():
        if row["place"] is not None:
            truth[row["place"]] += row["pop"]
    gaps = [abs(row["count"] - truth[row["geocode"]]) for row in rows]
    assert place.errors.mean_absolute_error == pytest.approx(sum(gaps) / len(gaps))
    assert invoke("report", run).exit_code == 0


# -- report ---------------------------------------------------------------------------------------


def test_report_is_remade_and_the_run_still_verifies(state, tmp_path):
    copy = shutil.copytree(state / "runs/demo", tmp_path / "copy")
    page = copy / "report/index.html"
    kept = page.read_bytes()
    page.write_text("spoilt")
    assert not all(finding.holds for finding in verify_run(copy))
    assert invoke("report", copy).exit_code == 0
    assert page.read_bytes() == kept
    assert all(finding.holds for finding in verify_run(copy))


def test_a_remade_report_hides_no_other_change(state, tmp_path):
    copy = shutil.copytree(state / "runs/demo", tmp_path / "copy")
    (copy / "privacy.json").write_text("{}")
    assert invoke("report", copy).exit_code == 0
    assert not all(finding.holds for finding in verify_run(copy))


def test_report_needs_a_finished_run(state, tmp_path):
    refused(invoke("report", tmp_path), "not a run folder")
    copy = shutil.copytree(state / "runs/demo", tmp_path / "copy")
    (copy / "manifest.json").unlink()
    refused(invoke("report", copy), "not finished")


def test_a_damaged_manifest_is_reported(state, tmp_path):
    copy = shutil.copytree(state / "runs/demo", tmp_path / "copy")
    (copy / "manifest.json").write_text('{"created": "2026"}')
    refused(invoke("report", copy), "damaged")


def test_a_missing_table_is_reported(state, tmp_path):
    copy = shutil.copytree(state / "runs/demo", tmp_path / "copy")
    (copy / "release/county.parquet").unlink()
    refused(invoke("report", copy), "missing")
