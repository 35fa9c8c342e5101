"""An executor that the package does not have: a family at a time, from the last to the first."""

from functools import partial

import pytest

from execution.test_same_release import METHODS, estimated
from kept_runs import unpack
from trellis.execution.threads import Threads


class Backwards:
    """Whoever counts on the order of calls, or on runs of several families, is found out."""

    def __init__(self):
        self.calls = 0

    def map_families(self, task, start, fills=()):
        self.calls += 1
        work = partial(task, *(fill.array for fill in fills))
        return [work(i, i + 1) for i in reversed(range(start.size - 1))][::-1]

    def map_in_order(self, task, items):
        self.calls += 1
        return map(task, items)

    def close(self):
        """Nothing was started."""


@pytest.mark.parametrize(("kind", "method"), METHODS)
def test_a_release_is_the_same_bytes(tmp_path, kind, method):
    run, toy = unpack(kind, tmp_path), Backwards()
    assert estimated(run, method, tmp_path / "toy", toy) == estimated(
        run, method, tmp_path / "loop", Threads(1)
    )
    assert toy.calls
