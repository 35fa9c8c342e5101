"""What loops tell about their progress, and what is told of the stages of a release."""

import io

import numpy as np
import pytest
from rich.console import Console

import flow_worlds
import histogram_release_worlds
import size_worlds
import spine_worlds
import trellis
from trellis.cli import terminal as terminal_module
from trellis.execution.progress import in_parts, listening, part, tell_done, told_from_here
from trellis.execution.threads import LEAST_RUN, map_families
from trellis.verify import verify_run
from trellis.workflow.frames import Frames
from worlds import write_world


@pytest.fixture
def told():
    shares = []
    with listening(shares.append):
        yield shares


def test_without_a_listener_nothing_happens():
    tell_done(0.5)
    with part(0.0, 0.5):
        assert list(in_parts("ab", [1, 2])) == ["a", "b"]


def test_parts_of_parts(told):
    for outer in in_parts("ab", [1, 3]):
        if outer == "b":
            for _ in in_parts(range(3)):
                pass
    assert told == [0.25, 0.5, 0.75, 1.0, 1.0]


def test_a_part_is_done_when_it_ends(told):
    with part(0.2, 0.6):
        tell_done(0.5)
    assert told == pytest.approx([0.4, 0.6])


def test_inside_of_some_parts_nothing_is_told(told):
    for _ in in_parts("ab", inner=False):
        tell_done(0.1)
        list(in_parts("cd"))
    assert told == [0.5, 1.0]


def test_a_loop_that_is_left_leaves_no_trace(told):
    for _ in in_parts("abcd"):
        break
    tell_done(0.5)
    assert told == [0.5]


def test_parts_without_work_are_no_trouble(told):
    assert list(in_parts([], [])) == []
    assert list(in_parts("a", [0])) == ["a"]
    assert told == [0.0]


@pytest.mark.parametrize("workers", [1, 2])
def test_runs_of_families_tell(told, workers):
    start = np.arange(8 * LEAST_RUN + 1)
    map_families(lambda first, last: tell_done(0.123), start, workers)
    assert told[-1] == 1.0
    if workers == 2:
        assert 0.123 not in told  # threads know nothing of the stage
        assert told == sorted(told)


def test_a_thread_may_be_given_the_means(told):
    tell = told_from_here()
    start = np.arange(8 * LEAST_RUN + 1)
    map_families(lambda first, last: tell(last / start.size), start, workers=2)
    assert len(told) > 8


# -- stages ---------------------------------------------------------------------------------------


class Recording:
    """Shares by stage."""

    def __init__(self):
        self.told = {}

    def stage(self, name, *, line=True):
        return listening(self.told.setdefault(name, []).append)

    def advise(self, text):
        pass


def histograms(folder, progress, **changes):
    spec = trellis.Spec.load(histogram_release_worlds.write_histogram_world(folder, **changes))
    return trellis.run(spec, folder / "run", progress=progress)


def counts(folder, progress):
    return trellis.run(trellis.Spec.load(write_world(folder)), folder / "run", progress=progress)


def sizes(folder, progress):
    spec = trellis.Spec.load(size_worlds.write_size_world(folder))
    return trellis.run(spec, folder / "run", progress=progress)


def flows(folder, progress):
    spec = trellis.Spec.load(flow_worlds.write_flow_world(folder))
    return trellis.run(spec, folder / "run", progress=progress)


@pytest.mark.parametrize("kind", [counts, histograms, sizes, flows])
def test_stages_tell_that_they_are_done(tmp_path, kind):
    progress = Recording()
    release = kind(tmp_path, progress)
    stages = ["plan", "privacy", "tabulate", "measure", "estimate", "release", "report"]
    assert [name for name in progress.told if name != "privacy"] == stages[:1] + stages[2:]
    assert progress.told["tabulate"] == []  # how long that takes is about the records
    for name in ("measure", "estimate", "release", "report"):
        assert progress.told[name], name
        assert all(0 <= share <= 1 for share in progress.told[name])
        assert progress.told[name][-1] == pytest.approx(1)
    shares = []
    with listening(shares.append):
        verify_run(release.path)
    assert len(shares) > 5
    assert shares[-1] == pytest.approx(1)


def test_of_a_descent_only_levels_are_told(tmp_path):
    """While noise is drawn level by level, families are fitted to it: nothing is shown of that."""
    progress = Recording()
    histograms(
        tmp_path, progress, estimate={"method": "topdown"},
        output={"tables": {"default": ["total"]}, "measurements": "used"},
    )  # fmt: skip
    *exact, one, two, three, end = progress.told["measure"]
    assert max(exact) == pytest.approx(0.1)
    assert (one, two, three) == pytest.approx((0.1 + 0.9 / 8, 0.1 + 0.9 / 2, 1))  # 1, 3, 4 areas
    assert end == 1


def test_a_simulation_is_one_stage(tmp_path):
    from trellis.workflow.outlook.simulate_counts import simulate_counts
    from trellis.workflow.preparing.prepare import prepare

    table = spine_worlds.blocks()
    spec = spine_worlds.spec(tmp_path, areas=None, spine=None)
    prepared = prepare(spec, Frames(hierarchy=table.select(["geoid"])))
    progress = Recording()
    simulate_counts(prepared, np.ones((table.num_rows, 1), np.int64), 4, progress=progress)
    [(name, shares)] = progress.told.items()
    assert name == "simulate 4"
    assert {0.25, 0.5, 0.75, 1.0} <= set(shares)
    assert len(shares) > 8


# -- the terminal ---------------------------------------------------------------------------------


def shown(monkeypatch, is_terminal, work, **options):
    text = io.StringIO()
    screen = terminal_module.Terminal()
    monkeypatch.setattr(
        screen, "_err", Console(file=text, force_terminal=is_terminal, width=80, height=20)
    )
    with screen.stage("[estimate]", **options):
        work()
    return text.getvalue()


def test_a_terminal_shows_per_cent_that_never_fall(monkeypatch):
    def work():
        tell_done(0.42)
        tell_done(0.17)

    text = shown(monkeypatch, True, work)
    assert "[estimate]" in text
    assert "42 %" in text
    assert "17 %" not in text
    assert text.rstrip().endswith("[estimate]: done")


def test_without_anything_told_there_are_no_per_cent(monkeypatch):
    assert "%" not in shown(monkeypatch, True, lambda: None)


def test_elsewhere_a_line_is_all(monkeypatch):
    assert shown(monkeypatch, False, lambda: tell_done(0.42)) == "[estimate] ...\n"
    assert shown(monkeypatch, False, lambda: tell_done(0.42), line=False) == ""
