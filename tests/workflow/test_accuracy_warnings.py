"""Margins of error that are of no use are told before anything is spent, for every kind."""

from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import flow_worlds
import size_worlds
import spine_worlds
import trellis
from histogram_release_worlds import write_histogram_world
from trellis.cli.app import app
from trellis.planning.forecast.useless_margins import Margin, useless_margins, without_target
from trellis.workflow.frames import Frames
from trellis.workflow.outlook.accuracy_warnings import accuracy_warnings
from trellis.workflow.outlook.plan_report import plan_report
from trellis.workflow.preparing.prepare import foreseen, prepare
from worlds import REMOVE, plan_for, write_world

LITTLE = {"state": "9999/10000", "town": "1/10000"}
TRAP = {"accuracy": [{"level": "state", "within": 9}], "privacy__budget": REMOVE}
"""A target on one level, and no budget: the others get what is left."""


class Listener:
    """Notes what a run tells, in order."""

    def __init__(self):
        self.heard = []

    @contextmanager
    def stage(self, name):
        self.heard.append(name)
        yield

    def advise(self, text):
        self.heard.append(f"warning: {text}")


def warned_of(spec, **frames):
    prepared = prepare(spec, Frames(**frames))
    return accuracy_warnings(prepared, foreseen(prepared))


# -- the rule -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("times", "is_useless"), [(19.9, False), (20.1, True)])
def test_a_margin_beyond_twenty_times_the_best_is_useless(times, is_useless):
    margins = [Margin("nation", 0.0), Margin("state", 3.0), Margin("town", 3.0 * times)]
    found = useless_margins(plan_for(), margins)
    assert bool(found) == is_useless
    for line in found:
        assert line.startswith("level 'town': ")
        assert "20 times that of level 'state' (3)" in line
        assert "privacy.shares" in line


@pytest.mark.parametrize(("typical", "is_useless"), [(2.9, True), (3.1, False), (None, False)])
def test_a_margin_above_the_median_count_of_a_prior_is_useless(typical, is_useless):
    found = useless_margins(plan_for(), [Margin("town", 3.0, typical_count=typical)])
    assert bool(found) == is_useless
    assert all("above the median count of the prior (2.9)" in line for line in found)


def test_exact_tables_need_no_target():
    margins = [Margin("nation", 0.0), Margin("state", 3.0), Margin("town", 4.0, "sex"),
               Margin("town", 5.0, "age"), Margin("place", 2.0, is_area=True)]  # fmt: skip
    [line] = without_target(plan_for(), margins, {"state"})
    assert "town (standard error 5), place (standard error 2), in records" in line
    assert "nation" not in line
    assert without_target(plan_for(), margins, {"state", "town", "place"}) == []


# -- every kind -----------------------------------------------------------------------------------


def test_a_target_on_one_level_warns_of_the_others(tmp_path):
    spec = trellis.Spec.load(write_world(tmp_path, **TRAP))
    *useless, left = warned_of(spec)
    assert ["level 'town'" in line for line in useless] == [True]
    assert "no target for town" in left
    content = plan_report(spec).warnings
    assert list(content) == [*useless, left]


def test_an_ordinary_plan_has_no_warning(tmp_path):
    assert warned_of(trellis.Spec.load(write_world(tmp_path))) == []


def test_targets_that_decide_nothing_leave_nothing_out(tmp_path):
    spec = write_world(tmp_path, accuracy=[{"level": "state", "within": 90}])
    assert warned_of(trellis.Spec.load(spec)) == []


def test_small_counts_of_a_prior_warn(tmp_path):
    optimal = {"optimal": {"prior": "old.csv"}}
    spec = write_world(tmp_path, privacy__shares=optimal, privacy__budget={"rho": "1/10"})
    (tmp_path / "old.csv").write_text("town,people\na1,1\na2,0\nb1,2\n", encoding="utf-8")
    assert any("prior (1.5)" in line for line in warned_of(trellis.Spec.load(spec)))
    (tmp_path / "old.csv").write_text("town,people\na1,900\na2,900\nb1,900\n", encoding="utf-8")
    assert warned_of(trellis.Spec.load(spec)) == []


def test_histograms_warn_by_table(tmp_path):
    spec = write_histogram_world(tmp_path, privacy__shares=LITTLE, strategy=REMOVE)
    found = warned_of(trellis.Spec.load(spec))
    assert any(line.startswith("level 'town', total: ") for line in found)
    assert all("privacy.shares, strategy" in line for line in found)
    plain = write_histogram_world(tmp_path)
    assert warned_of(trellis.Spec.load(plain)) == []


def test_a_prior_of_a_histogram_warns_by_table(tmp_path):
    optimal = {"optimal": {"prior": {"source": "old.csv"}}}
    spec = write_histogram_world(tmp_path, privacy__shares=optimal, strategy=REMOVE,
                                 privacy__budget={"rho": "1/100"})  # fmt: skip
    (tmp_path / "old.csv").write_text("town,age,sex,people\na1,0,m,1\nb1,3,f,1\n", encoding="utf-8")
    found = warned_of(trellis.Spec.load(spec))
    assert any("level 'town', adult * sex" in line and "prior (1)" in line for line in found)


def test_group_sizes_warn(tmp_path):
    spec = size_worlds.spec_in(tmp_path, privacy__shares=LITTLE)
    found = warned_of(spec, hierarchy=size_worlds.AREAS)
    assert ["level 'town'" in line for line in found] == [True]
    assert "groups" in found[0]
    assert "accuracy" not in found[0]
    assert warned_of(size_worlds.spec_in(tmp_path), hierarchy=size_worlds.AREAS) == []


def test_flows_warn(tmp_path):
    plain = trellis.Spec.load(flow_worlds.write_flow_world(tmp_path))
    assert warned_of(plain) == []
    _, *rest, last = prepare(plain).plan.levels
    shares = dict.fromkeys(rest, f"9999/{10000 * len(rest)}") | {last: "1/10000"}
    spec = flow_worlds.write_flow_world(tmp_path, privacy__shares=shares)
    found = warned_of(trellis.Spec.load(spec))
    assert [line.startswith(f"level {last!r}: ") for line in found] == [True]
    assert "trips" in found[0]


def test_areas_of_interest_warn(tmp_path):
    """Blocks get next to nothing, so areas that cut across everything above them are useless."""
    n = 600
    blocks = pa.table({"geoid": [f"{10:02}{i // 300:03}{i:05}" for i in range(n)],
                       "pop": np.full(n, 9), "odd": [f"o{i % 2}" for i in range(n)]})  # fmt: skip
    content = {key: part for key, part in spine_worlds.SPEC.items() if key != "spine"} | {
        "areas": {"odd": {"area": "geoid", "entity": "odd"}},
        "hierarchy": {"code": {"column": "geoid", "width": 10},
                      "prefixes": {"state": 2, "county": 5, "block": 10}},
        "privacy": spine_worlds.SPEC["privacy"] | {
            "shares": {"county": "999/1000", "block": "1/1000"}},
    }  # fmt: skip
    spec = trellis.Spec.parse(content, tmp_path)
    found = warned_of(spec, hierarchy=blocks.select(["geoid"]),
                      areas={"odd": blocks.select(["geoid", "odd"])})  # fmt: skip
    assert any(line.startswith("areas 'odd': ") for line in found)


# -- where it is told -----------------------------------------------------------------------------


def test_a_run_warns_before_it_touches_a_record(tmp_path):
    listener = Listener()
    trellis.run(trellis.Spec.load(write_world(tmp_path, **TRAP)), progress=listener)
    told = [text.startswith("warning: ") for text in listener.heard]
    assert told.index(True) < listener.heard.index("tabulate")
    assert sum(told) == 2


@pytest.mark.parametrize("command", ["plan", "check", "run"])
def test_commands_warn_on_one_line_each_even_if_quiet(tmp_path, command):
    spec = write_world(tmp_path, **TRAP)
    quiet = ["--quiet"] if command != "plan" else []
    done = CliRunner().invoke(app, [command, str(spec), *quiet])
    assert done.exit_code == 0, done.output
    lines = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert len(lines) == 2
    assert "level 'town'" in lines[0]
    assert "add a target for each" in lines[1]


def test_json_has_the_warnings(tmp_path):
    spec = write_world(tmp_path, **TRAP)
    done = CliRunner().invoke(app, ["plan", str(spec), "--json"])
    assert '"warnings": [' in done.stdout
