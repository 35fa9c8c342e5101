"""Privacy contract: planted values of the records turn up nowhere that people look.

A recognisable count and recognisable texts are planted in the records. After a full run, a failed
run and every error path, everything written or said is searched: standard output and error, logs,
tracebacks, the run folder (Parquet decoded), the ledger, temporary files.
"""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import trellis
from contracts.canary import (
    COUNT,
    FRACTION,
    TEXT,
    crash_shows_no_planted_value,
    found,
    quoting_error_is_found,
    texts_in,
)
from steps import replace_step
from trellis.errors import SpecError
from trellis.model.plans.answers import answers

# The noise is far wider than the search: a noisy value equals COUNT with probability below 1e-5.
SPEC = {
    "release": "canary",
    "kind": "counts",
    "dataset": "canary",
    "data": {"source": "records.parquet", "area": "area", "count": "people"},
    "hierarchy": {"source": "areas.csv", "columns": ["region", "area"]},
    "privacy": {
        "unit": "person",
        "neighbours": "replace",
        "max_contribution": 1000,
        "mechanism": "discrete_gaussian",
        "budget": {"rho": "1e-6"},
    },
}
AREAS = "region,area\nr,a1\nr,a2\nr,a3\n"


def world(folder: Path, people: list, areas: list | None = None) -> Path:
    """A spec with records that hold the planted values."""
    folder.mkdir(exist_ok=True)
    areas = areas or ["a1", "a2", "a3"]
    table = {"area": areas, "people": people, "note": [TEXT] * len(areas)}
    pq.write_table(pa.table(table), folder / "records.parquet")
    (folder / "areas.csv").write_text(AREAS)
    (folder / "spec.yaml").write_text(yaml.safe_dump(SPEC))
    return folder / "spec.yaml"


def test_full_run_shows_no_planted_value(tmp_path, invoke):
    spec = world(tmp_path / "w", [COUNT, 5_000_000, 2_000_000])
    for command in (["check", spec], ["plan", spec], ["run", spec], ["run", spec]):
        code, texts = invoke(*command)
        assert code == 0
        assert not found(texts)
    folder = spec.parent / "runs" / "canary"
    code, texts = invoke("verify", folder)
    assert code == 0
    assert not found(texts)
    assert not found(texts_in(spec.parent, leave_out=("records.parquet",)))


BAD_RECORDS = {
    "negative": ([-COUNT, 1, 2], None),
    "fractional": ([FRACTION, 1.0, 2.0], None),
    "text": ([TEXT, "1", "2"], None),
    "missing": ([COUNT, None, 2], None),
    "too large": ([COUNT * 10**12, 1, 2], None),
    "unknown area": ([COUNT, 1, 2], ["a1", TEXT, "a3"]),
    "area missing": ([COUNT, 1, 2], ["a1", None, "a3"]),
}


@pytest.mark.parametrize("case", BAD_RECORDS)
@pytest.mark.parametrize("command", ["check", "run", "measure"])
def test_error_paths_show_no_planted_value(tmp_path, invoke, case, command):
    spec = world(tmp_path / "w", *BAD_RECORDS[case])
    code, texts = invoke(command, spec)
    assert code == 2
    assert not found(texts)
    assert not found(texts_in(spec.parent, leave_out=("records.parquet",)))
    assert not (spec.parent / "runs").exists()


def test_crash_in_every_later_step_shows_no_planted_value(tmp_path, invoke, monkeypatch):
    steps = ["measure_counts", "write_measurements", "sync_tree", "publish"]
    for step in steps:
        spec = world(tmp_path / step, [COUNT, 5_000_000, 2_000_000])

        crash_shows_no_planted_value(spec, step, invoke, monkeypatch)


def test_traceback_of_the_real_process_shows_no_planted_value(tmp_path):
    """The console script must not print local variables when it crashes."""
    spec = world(tmp_path / "w", [COUNT, 5_000_000, 2_000_000])
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
    spec = world(tmp_path / "w", [COUNT, 1, 2])
    (spec.parent / "both.csv").write_text(text)
    layout = (
        {"parent_child": {**layout["parent_child"], "source": "both.csv"}}
        if ("parent_child" in layout)
        else {**layout, "source": "both.csv"}
    )
    data = {**SPEC["data"], "source": "both.csv"}
    content = {**SPEC, "data": data, "hierarchy": {**layout, "public": True}}
    spec.write_text(yaml.safe_dump(content))
    code, texts = invoke("check", spec)
    assert code == 2
    assert any(shown in t for t in texts)
    assert not found(texts)


def test_a_frame_that_holds_records_and_areas_must_be_declared_public(tmp_path):
    frame = pa.table({"region": ["r", "r"], "area": ["a1", TEXT], "people": [1, 2]})
    hierarchy = {"columns": ["region", "area"]}
    content = {**SPEC, "data": {"area": "area", "count": "people"}, "hierarchy": hierarchy}
    spec = trellis.Spec.parse(content, tmp_path)
    with pytest.raises(SpecError, match="public: true"):
        trellis.check(spec, data=frame, hierarchy=frame)
    content["hierarchy"] = {**hierarchy, "public": True}
    trellis.check(trellis.Spec.parse(content, tmp_path), data=frame, hierarchy=frame)


# -- mutations: each must make the search above find something ------------------------------------


def test_mutation_measuring_without_noise_is_found(tmp_path, invoke, monkeypatch):
    from trellis.model import Measurements

    def bare(plan, hierarchy, counts, *rest):
        return Measurements(plan, hierarchy, tuple(answers(plan, hierarchy, counts.leaves)))

    replace_step(monkeypatch, "measure_counts", bare)
    spec = world(tmp_path / "w", [COUNT, 5_000_000, 2_000_000])
    code, _ = invoke("run", spec)
    assert code == 0
    assert found(texts_in(spec.parent / "runs"))


def test_mutation_error_that_quotes_a_value_is_found(tmp_path, invoke, monkeypatch):
    from trellis.ingest.records import counts

    quoting_error_is_found(
        world(tmp_path / "w", [-COUNT, 1, 2]), counts, "min", invoke, monkeypatch
    )


def test_mutation_temporary_file_is_found(tmp_path, invoke, monkeypatch):
    import tempfile

    def spilling(plan, hierarchy, counts, *rest):
        with tempfile.NamedTemporaryFile("w", delete=False) as file:
            file.write(str(counts.leaves.tolist()))
        raise RuntimeError("planned crash")

    replace_step(monkeypatch, "measure_counts", spilling)
    _, texts = invoke("run", world(tmp_path / "w", [COUNT, 5_000_000, 2_000_000]))
    assert found(texts)
