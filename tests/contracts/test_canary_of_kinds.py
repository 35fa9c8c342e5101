"""Privacy contract: planted values of what only one kind of release has."""

import subprocess
import sys

import pyarrow as pa
import pytest
import yaml

import trellis
from contracts.canary import crash, found, found_beside, texts_in
from kinds import WORLDS
from kinds.world import COUNT, FRACTION, TEXT
from trellis.errors import SpecError
from trellis.privacy.ledger import Ledger
from trellis.workflow.confidential import flow_descent, histogram_descent

COUNTS, HISTOGRAMS = WORLDS["counts"].planted, WORLDS["histograms"].planted
FLOWS, SIZES = WORLDS["flows"].planted, WORLDS["group_sizes"].planted

# -- counts ---------------------------------------------------------------------------------------


def test_traceback_of_the_real_process_shows_no_planted_value(tmp_path):
    """The console script must not print local variables when it crashes."""
    spec = COUNTS.write(tmp_path / "w")
    program = (
        "import sys, trellis.workflow.confidential.kinds.counts as half\n"
        "half.measure_counts = lambda plan, hierarchy, counts, *rest: counts.leaves[0, 0] / 0\n"
        "from trellis.cli import main\n"
        f"sys.argv = ['trellis', 'run', {str(spec)!r}]\n"
        "import warnings; warnings.simplefilter('error')\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "Traceback" in done.stderr
    assert not found([done.stdout, done.stderr])


@pytest.mark.parametrize(
    ("layout", "text", "shown"),
    {
        "no header": ({"columns": ["region", "area"]}, f"{TEXT},{COUNT}\nr,5\n", "no column"),
        "area twice": (
            {"columns": ["region", "area"]},
            f"region,area,people,note\nr,a1,{COUNT},{TEXT}\nr,a1,5,{TEXT}\n",
            "'a1' occurs twice",
        ),
        "codes of two lengths": (
            {"code": {"column": "area"}, "prefixes": {"a": 1, "b": 2}},
            f"area,people,note\na1,{COUNT},{TEXT}\na11,{COUNT},{TEXT}\n",
            "'a11'",
        ),
        "cycle": (
            {"parent_child": {"child": "a", "parent": "b"}},
            f"a,b,people,note\ny,x,{COUNT},{TEXT}\nx,y,{COUNT},{TEXT}\n",
            "'y' is its own ancestor",
        ),
    }.values(),
)
def test_of_areas_that_come_with_the_records_only_declared_codes_are_quoted(
    tmp_path, invoke, layout, text, shown
):
    spec = COUNTS.write(tmp_path / "w")
    (spec.parent / "both.csv").write_text(text)
    layout = (
        {"parent_child": {**layout["parent_child"], "source": "both.csv"}}
        if ("parent_child" in layout)
        else {**layout, "source": "both.csv"}
    )
    data = {**COUNTS.spec["data"], "source": "both.csv"}
    content = {**COUNTS.spec, "data": data, "hierarchy": {**layout, "public": True}}
    spec.write_text(yaml.safe_dump(content))
    code, texts = invoke("check", spec)
    assert code == 2
    assert any(shown in t for t in texts)
    assert not found(texts)


def test_a_frame_that_holds_records_and_areas_must_be_declared_public(tmp_path):
    frame = pa.table({"region": ["r", "r"], "area": ["a1", TEXT], "people": [1, 2]})
    hierarchy = {"columns": ["region", "area"]}
    content = {**COUNTS.spec, "data": {"area": "area", "count": "people"}, "hierarchy": hierarchy}
    spec = trellis.Spec.parse(content, tmp_path)
    with pytest.raises(SpecError, match="public: true"):
        trellis.check(spec, data=frame, hierarchy=frame)
    content["hierarchy"] = {**hierarchy, "public": True}
    trellis.check(trellis.Spec.parse(content, tmp_path), data=frame, hierarchy=frame)


# -- flows ----------------------------------------------------------------------------------------

UNITS = {"home": ["a1"] * 3, "work": ["a2", "a2", "a3"], "who": [TEXT, TEXT, "p"]}
BAD_UNITS = {
    "above m": ({}, 1, {"number": "at_most"}),
    "not exactly m": ({}, 2, {"number": "exactly"}),
    "not distinct": ({}, 2, {"number": "at_most", "distinct": True}),
    "no unit": ({"who": [TEXT, None, "p"]}, 2, {"number": "at_most"}),
}


@pytest.mark.parametrize("case", BAD_UNITS)
def test_contributions_above_the_bound_are_refused_without_a_name(tmp_path, invoke, case):
    changes, m, trips = BAD_UNITS[case]
    data = {"source": "records.parquet", "origin": "home", "destination": "work", "unit": "who"}
    privacy = FLOWS.spec["privacy"] | {"max_contribution": m}
    spec = FLOWS.write(tmp_path / "w", UNITS | changes, data=data, privacy=privacy, trips=trips)
    code, texts = invoke("run", spec)
    assert code == 2
    assert not found(texts)
    assert not (spec.parent / "runs").exists()


def test_a_descent_that_broke_off_is_destroyed_unread_and_charged_once(
    tmp_path, invoke, monkeypatch
):
    """It breaks off after the second level was written; the next attempt starts from the root."""
    spec = FLOWS.write(tmp_path / "w")
    folder, real, seen = spec.parent / "runs" / "canary", flow_descent.table_writer, []

    def breaking(path):
        seen.append(path.parent.name)
        if len(seen) == 3:
            assert len(list(folder.glob(".measurements.*.partial/level=*"))) == 2
            raise RuntimeError("planned crash")
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(flow_descent, "table_writer", breaking)
        assert invoke("run", spec)[0] == 1
    assert not (folder / "measurements").exists()
    assert not list(folder.glob(".measurements*"))
    assert invoke("run", spec)[0] == 0
    assert invoke("verify", folder)[0] == 0
    (entry,) = Ledger(spec.parent / "ledger.sqlite").entries("canary")
    assert entry.is_settled


# -- group sizes ----------------------------------------------------------------------------------

HOMES = ["h1", "h2", "h3"]
RECORDS = {
    "data": {"source": "records.parquet", "group": "home", "area": "area", "quantity": "trips",
             "max_quantity": 4},
    "group_register": {"source": "homes.csv", "area": "area", "group": "home"},
}  # fmt: skip
GOOD_RECORDS = {"home": HOMES, "area": ["a1", "a1", "a2"], "trips": [1, 2, 3]}
BAD_RECORDS = {
    "not in the register": {"home": ["h1", TEXT, "h3"]},
    "another area": {"area": ["a1", TEXT, "a2"]},
    "quantity above its bound": {"trips": [COUNT, 1, 1]},
    "fractional quantity": {"trips": [FRACTION, 1.0, 1.0]},
}


@pytest.mark.parametrize("case", BAD_RECORDS)
@pytest.mark.parametrize("command", ["check", "run"])
def test_error_paths_of_records_show_no_planted_value(tmp_path, invoke, case, command):
    spec = SIZES.write(tmp_path / "w", GOOD_RECORDS | BAD_RECORDS[case], **RECORDS)
    homes = "".join(
        f"{home},{area}\n" for home, area in zip(HOMES, ("a1", "a1", "a2"), strict=True)
    )
    (spec.parent / "homes.csv").write_text("home,area\n" + homes)
    code, texts = invoke(command, spec)
    assert code == 2
    assert not found(texts)
    assert not found_beside(spec)


# -- histograms -----------------------------------------------------------------------------------

USED = {"estimate": {"method": "topdown"}, "output": {"measurements": "used"}}


def test_the_rule_that_records_break_is_named_in_the_confidential_log_only(tmp_path, invoke):
    spec = HISTOGRAMS.write(
        tmp_path / "w", {**HISTOGRAMS.good, **HISTOGRAMS.bad["structural zero"]}
    )
    log = tmp_path / "log.txt"
    code, texts = invoke("run", spec, "--confidential-log", log)
    assert code == 2
    assert not any("age = 0 and sex = f" in text for text in texts)
    assert "5000000 records" in log.read_text()
    (tmp_path / "w" / "run.json").write_text("{}")
    inside = tmp_path / "w" / "log.txt"
    code, texts = invoke("run", spec, "--confidential-log", inside)
    assert code == 2
    assert any("run folder" in text for text in texts)
    assert not inside.exists()


def test_a_descent_that_breaks_off_leaves_nothing(tmp_path, invoke, monkeypatch):
    """The first level is on disk, and nothing of it is said, left behind, or used again."""
    spec = HISTOGRAMS.write(tmp_path / "w", **USED)
    with monkeypatch.context() as patch:
        patch.setattr(histogram_descent, "write_counts", crash)
        code, texts = invoke("run", spec)
    assert code == 1
    assert not found(texts)
    assert not any("level" in text for text in texts[:2])
    run = spec.parent / "runs" / "canary"
    assert not [path for path in run.rglob("*") if "measurements" in path.as_posix()]
    assert invoke("run", spec)[0] == 0
    assert invoke("verify", run)[0] == 0
    (entry,) = Ledger(spec.parent / "ledger.sqlite").entries("canary")
    assert entry.is_settled


def test_mutation_measuring_rows_without_noise_is_found(tmp_path, invoke, monkeypatch):
    from trellis.measure import histograms

    def bare(planned, query, cells, first, last, bits):
        return cells.marginal(query.cell_of, query.n_cells, first, last)

    monkeypatch.setattr(histograms, "noisy_answer", bare)
    spec = HISTOGRAMS.write(tmp_path / "w")
    assert invoke("run", spec)[0] == 0
    assert found(texts_in(spec.parent / "runs"))


def test_mutation_measuring_used_rows_without_noise_is_found(tmp_path, invoke, monkeypatch):
    from trellis.measure import histograms

    def bare(planned, query, cells, area, cell, bits):
        return cells.marginal_rows(query.cell_of, query.n_cells, area, cell)

    monkeypatch.setattr(histograms, "noisy_rows", bare)
    spec = HISTOGRAMS.write(tmp_path / "w", **USED)
    assert invoke("run", spec)[0] == 0
    assert found(texts_in(spec.parent / "runs"))
