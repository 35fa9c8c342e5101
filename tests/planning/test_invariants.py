"""Exact totals and the neighbouring relation must agree."""

import pytest

from trellis.errors import SpecError
from trellis.planning.kinds.invariants import exact_levels
from trellis.privacy.neighbours import Neighbours

LEVELS = ("nation", "state", "county", "block")
REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE


@pytest.mark.parametrize("listed", [(), ("nation",)])
@pytest.mark.parametrize("n_cells", [1, 2])
def test_under_replace_the_root_total_is_exact_whether_listed_or_not(listed, n_cells):
    assert exact_levels(LEVELS, listed, REPLACE, n_cells) == ("nation",)


def test_exact_totals_of_a_level_are_exact_on_all_levels_above():
    assert exact_levels(LEVELS, ("county",), REPLACE, 1) == ("nation", "state", "county")
    assert exact_levels(LEVELS, ("county", "nation"), REPLACE, 1) == LEVELS[:3]


def test_under_add_remove_nothing_is_exact():
    assert exact_levels(LEVELS, (), ADD_REMOVE, 1) == ()


@pytest.mark.parametrize("level", LEVELS)
def test_under_add_remove_every_exact_total_is_refused(level):
    with pytest.raises(SpecError, match=f"{level!r} would show whether a record was added"):
        exact_levels(LEVELS, (level,), ADD_REMOVE, 1)


@pytest.mark.parametrize("neighbours", Neighbours)
def test_unknown_levels_are_refused(neighbours):
    with pytest.raises(SpecError, match="names level 'town'; the hierarchy has nation"):
        exact_levels(LEVELS, ("town",), neighbours, 1)


def test_exact_totals_of_everything_leave_nothing_to_protect():
    with pytest.raises(SpecError, match="nothing is left to protect"):
        exact_levels(LEVELS, ("block",), REPLACE, 1)
    with pytest.raises(SpecError, match="nothing is left to protect"):
        exact_levels(("nation",), (), REPLACE, 1)  # a single total, and that is exact


def test_with_several_cells_only_the_root_total_may_be_exact():
    with pytest.raises(SpecError, match="only the total of the root level 'nation'"):
        exact_levels(LEVELS, ("state",), REPLACE, 2)
    assert exact_levels(("nation",), (), REPLACE, 2) == ("nation",)  # its cells are protected
