"""The spec of a release of group sizes: what it needs, and what it has no use for."""

from __future__ import annotations

from typing import get_args

import pytest

from size_worlds import SPEC, TABLE_FORM, spec_in
from trellis.errors import SpecError
from trellis.model.plans.kinds.group_sizes import SIZE_METHODS
from trellis.spec import Spec
from trellis.spec.group_sizes import GroupSizesEstimate
from worlds import REMOVE, changed
from worlds import SPEC as COUNTS


def test_both_forms_are_accepted(tmp_path):
    assert spec_in(tmp_path).estimate.method == "cumulative_joint"
    assert spec_in(tmp_path, **TABLE_FORM).data.size == "size"


def test_every_mechanism_can_be_named():
    assert get_args(GroupSizesEstimate.model_fields["method"].annotation) == tuple(SIZE_METHODS)


@pytest.mark.parametrize("mechanism", SIZE_METHODS)
def test_methods_have_the_same_key_as_in_other_kinds(tmp_path, mechanism):
    spec = spec_in(tmp_path, estimate__method=mechanism)
    assert (spec.estimate.method, spec.notes) == (mechanism, [])


def test_the_old_key_is_read_with_a_line_that_says_what_to_write(tmp_path):
    spec = spec_in(tmp_path, mechanism="histogram_exact")
    assert spec.estimate.method == "histogram_exact"
    assert spec.notes == ["mechanism is now written estimate.method."]
    assert spec == spec_in(tmp_path, estimate__method="histogram_exact")


REFUSED = {
    "no sizes": ({"sizes": REMOVE}, "Missing key 'sizes'"),
    "no cap": ({"sizes": {}}, "Missing key 'sizes.cap'"),
    "cap of zero": ({"sizes__cap": 0}, "sizes.cap"),
    "no register": ({"group_register": REMOVE}, "Missing key 'group_register'"),
    "groups not declared public": ({"unprotected": REMOVE}, "unprotected: {groups: true}"),
    "groups declared protected": ({"unprotected__groups": False}, "unprotected: {groups: true}"),
    "no split of the budget": ({"privacy__shares": REMOVE}, "Missing key 'privacy.shares'"),
    "no form": ({"data": {}}, "give group"),
    "two forms": ({"data__size": "s"}, "give group"),
    "groups with records": ({"data__groups": "n"}, "data.groups does not go with data.group"),
    "quantity with a table": (
        TABLE_FORM | {"data__quantity": "q"}, "data.quantity does not go with data.size"),
    "table without area": (
        TABLE_FORM | {"data": {"size": "s", "groups": "n"}}, "Missing key 'data.area'"),
    "table without groups": (
        TABLE_FORM | {"data": {"size": "s", "area": "a"}}, "Missing key 'data.groups'"),
    "table with a register of groups": (
        {"data": TABLE_FORM["data"]}, "Missing key 'group_register.groups'"),
    "records with declared numbers": (
        {"group_register": TABLE_FORM["group_register"]}, "Missing key 'group_register.group'"),
    "register of both forms": ({"group_register__groups": "n"}, "give group .* or groups"),
    "register of no form": ({"group_register": {"area": "town"}}, "give group .* or groups"),
    "bound without quantity": ({"data__max_quantity": 3}, "goes with data.quantity"),
    "cells": ({"data__cells": {"a": "b"}}, "`data.cells` is not a key of `kind: group_sizes`"),
    "count": ({"data__count": "n"}, "`data.count` is not a key of `kind: group_sizes`"),
    "areas": ({"areas": {"place": {"weight": 2}}}, "`kind: group_sizes`, only of counts."),
    "totals": ({"unprotected__totals": ["nation"]}, "`unprotected.totals` is not a key"),
    "method": ({"estimate": {"method": "gls"}}, "estimate.method: use"),
    "unknown mechanism": ({"mechanism": "histogram"}, "histogram_exact"),
    "unknown key": ({"size": {"cap": 3}}, "did you mean 'sizes'"),
    "unknown key of the register": (
        {"group_register__unit": "x"}, "Unknown key 'group_register.unit'"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_missing_or_foreign_is_named(tmp_path, case):
    changes, message = REFUSED[case]
    with pytest.raises(SpecError, match=message):
        spec_in(tmp_path, **changes)


FOREIGN_TO_COUNTS = {
    "mechanism": "cumulative_joint",
    "sizes": {"cap": 3},
    "group_register": {"area": "a", "group": "g"},
    "data__group": "g",
    "data__max_quantity": 2,
    "unprotected__groups": True,
    "estimate__weights": {"town": 1},
}


@pytest.mark.parametrize("key", FOREIGN_TO_COUNTS)
def test_counts_have_no_use_for_keys_of_group_sizes(tmp_path, key):
    with pytest.raises(SpecError, match="is not a key of `kind: counts`"):
        Spec.parse(changed(COUNTS, **{key: FOREIGN_TO_COUNTS[key]}), tmp_path)


def test_counts_still_need_an_area(tmp_path):
    with pytest.raises(SpecError, match=r"Missing key 'data\.area'"):
        Spec.parse(changed(COUNTS, data__area=REMOVE), tmp_path)


def test_a_register_made_of_the_records_is_refused(tmp_path):
    sources = {"data__source": "a/../people.csv", "group_register__source": "people.csv"}
    with pytest.raises(SpecError, match="comes from the confidential records"):
        spec_in(tmp_path, **sources)


def test_the_public_copy_names_no_file_and_no_foreign_key(tmp_path):
    kept = spec_in(
        tmp_path, data__source="people.csv", group_register__source="register.csv"
    ).public()
    assert ".csv" not in str(kept)
    assert kept["estimate"] == {"method": "cumulative_joint"}
    assert "totals" not in kept["unprotected"]
    counts = Spec.parse(COUNTS, tmp_path).public()
    assert {"mechanism", "sizes", "group_register"}.isdisjoint(counts)
    assert SPEC["sizes"] == kept["sizes"]
