import numpy as np
import pytest

from trellis.errors import StructureError
from trellis.model.tables.constraints import NO_BOUND, Constraints, LinearConstraint, Sense


def bound(**changes):
    fields = {
        "label": "rule",
        "level": "block",
        "query": "total",
        "sense": Sense.AT_MOST,
        "bound": np.array([[1], [NO_BOUND]]),
    }
    return LinearConstraint(**{**fields, **changes})


def test_constraints_are_found_by_level():
    constraints = Constraints((bound(), bound(level="tract")), np.zeros(3, dtype=bool))
    assert [c.level for c in constraints.on("tract")] == ["tract"]
    assert not Constraints.none(3).linear


@pytest.mark.parametrize(
    "changes",
    [
        {"bound": np.array([1, 2])},
        {"bound": np.array([[1.0]])},
        {"bound": np.array([[-2]])},
        {"group_of": np.array([0, 2])},
        {"group_of": np.array([-2, 0])},
        {"group_of": np.array([0.0, 1.0])},
        {"group_of": np.array([[0, 1]])},
    ],
)
def test_bad_bounds_are_refused(changes):
    with pytest.raises(StructureError, match="rule"):
        bound(**changes)


@pytest.mark.parametrize("impossible", [np.zeros(3), np.zeros((1, 3), dtype=bool)])
def test_bad_masks_are_refused(impossible):
    with pytest.raises(StructureError, match="boolean"):
        Constraints((), impossible)
