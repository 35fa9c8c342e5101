"""From records or tables, with a public register, to true numbers of groups by size."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from size_worlds import (
    AREAS,
    NUMBERS,
    RECORDS,
    REGISTER,
    TABLE,
    TABLE_FORM,
    TRUE_LEAVES,
    UNITS,
    spec_in,
)
from trellis.errors import InputError, SpecError
from trellis.workflow.confidential.check import check
from trellis.workflow.confidential.measuring import tabulate
from trellis.workflow.frames import Frames
from trellis.workflow.preparing.prepare import prepare

SECRET = "canary-4711"


def read(folder, data, register, /, **changes):
    prepared = prepare(spec_in(folder, **changes), Frames(hierarchy=AREAS))
    return tabulate(prepared, data, register).leaves


def with_column(table: pa.Table, name: str, values: list) -> pa.Table:
    columns = {c: table[c] for c in table.column_names if c != name}
    return pa.table({**columns, name: values})


def test_records_and_tables_give_the_same_sizes(tmp_path):
    assert read(tmp_path, RECORDS, REGISTER).tolist() == TRUE_LEAVES
    assert read(tmp_path, TABLE, NUMBERS, **TABLE_FORM).tolist() == TRUE_LEAVES


def test_groups_without_records_have_size_zero(tmp_path):
    nobody = RECORDS.slice(0, 0)
    leaves = read(tmp_path, nobody, REGISTER)
    assert leaves[:, 0].tolist() == [3, 1, 1, 2]
    assert leaves.sum() == len(UNITS)


def test_the_area_of_a_record_is_checked_if_it_is_named(tmp_path):
    towns = [UNITS[home] for home in RECORDS["home"].to_pylist()]
    named = with_column(RECORDS, "town", towns)
    form = {"data": {"group": "home", "area": "town"}}
    assert read(tmp_path, named, REGISTER, **form).tolist() == TRUE_LEAVES
    for wrong in ("b1", SECRET, None):
        moved = with_column(RECORDS, "town", [*towns[:-1], wrong])
        with pytest.raises(InputError, match="not the area of their group") as caught:
            read(tmp_path, moved, REGISTER, **form)
        assert SECRET not in str(caught.value)


def test_quantities_add_up(tmp_path):
    records = pa.table({"home": ["h1", "h1", "h4", "h6"], "trips": [1, 2, 0, 3]})
    form = {"data": {"group": "home", "quantity": "trips", "max_quantity": 3}}
    leaves = read(tmp_path, records, REGISTER, **form)
    assert leaves.tolist() == [[2, 0, 0, 1, 0], [1, 0, 0, 0, 0], [1, 0, 0, 0, 0], [1, 0, 0, 1, 0]]


def test_codes_of_groups_may_be_numbers(tmp_path):
    number = {home: i for i, home in enumerate(UNITS)}
    records = with_column(RECORDS, "home", [number[h] for h in RECORDS["home"].to_pylist()])
    register = pa.table({"home": list(number.values()), "town": list(UNITS.values())})
    assert read(tmp_path, records, register).tolist() == TRUE_LEAVES


BAD_RECORDS = {
    "unit not in the register": (["h1", SECRET], "not in the register"),
    "unit missing": (["h1", None], "not in the register"),
}


@pytest.mark.parametrize("case", BAD_RECORDS)
def test_bad_records_are_refused_without_a_value(tmp_path, case):
    homes, message = BAD_RECORDS[case]
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, pa.table({"home": homes}), REGISTER)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("quantity", "message"),
    [(-47.0, "negative"), (0.4711, "fractional"), (None, "missing"), (5.0, "max_quantity")],
)
def test_bad_quantities_are_refused_without_a_value(tmp_path, quantity, message):
    records = pa.table({"home": ["h1", "h2"], "trips": pa.array([1.0, quantity], pa.float64())})
    form = {"data": {"group": "home", "quantity": "trips", "max_quantity": 4}}
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, records, REGISTER, **form)
    assert "47" not in str(caught.value)


def test_sizes_above_the_cap_need_top_coding(tmp_path):
    for data, register, form in ((RECORDS, REGISTER, {}), (TABLE, NUMBERS, TABLE_FORM)):
        with pytest.raises(InputError, match="top_code") as caught:
            read(tmp_path, data, register, sizes={"cap": 4}, **form)
        assert "7" not in str(caught.value)
        assert read(tmp_path, data, register, sizes={"cap": 7}, **form)[3, 7] == 1


BAD_TABLES = {
    "negative size": ("size", [-1, *range(6)], "negative sizes"),
    "fractional size": ("size", [0.5, *range(6)], "fractional sizes"),
    "negative groups": ("homes", [-1] * 7, "negative counts"),
    "fractional groups": ("homes", [0.5] * 7, "fractional counts"),
    "text": ("homes", [SECRET] * 7, "missing or unreadable counts"),
    "unknown area": ("town", [SECRET] * 7, "not a leaf"),
    "other totals": ("homes", [4711] * 7, "number of groups that the register declares"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables_are_refused_without_a_value(tmp_path, case):
    column, values, message = BAD_TABLES[case]
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, with_column(TABLE, column, values), NUMBERS, **TABLE_FORM)
    assert not {SECRET, "4711"} & set(str(caught.value).split())


BAD_REGISTERS = {
    "two areas": ({"home": ["h1", "h1"], "town": ["a1", "b1"]}, "'h1' is in two areas"),
    "twice": ({"home": ["h1", "h1"], "town": ["a1", "a1"]}, "'h1' is listed twice"),
    "no name": ({"home": ["h1", None], "town": ["a1", "a1"]}, "has empty rows"),
    "unknown area": ({"home": ["h1"], "town": ["x"]}, "not a leaf of the hierarchy"),
}


@pytest.mark.parametrize("case", BAD_REGISTERS)
def test_bad_registers_are_refused(tmp_path, case):
    columns, message = BAD_REGISTERS[case]
    with pytest.raises(InputError, match=message):
        read(tmp_path, RECORDS, pa.table(columns))


BAD_NUMBERS = {
    "area missing": (["a1", "a2", "b1"], [3, 1, 1], "'c' is missing"),
    "area twice": (["a1", "a2", "b1", "c", "c"], [3, 1, 1, 1, 1], "'c' is listed twice"),
    "negative": (["a1", "a2", "b1", "c"], [3, 1, 1, -2], "negative numbers of groups"),
    "fractional": (["a1", "a2", "b1", "c"], [3, 1, 1, 1.5], "fractional numbers of groups"),
}


@pytest.mark.parametrize("case", BAD_NUMBERS)
def test_bad_numbers_of_groups_are_refused(tmp_path, case):
    towns, homes, message = BAD_NUMBERS[case]
    with pytest.raises(InputError, match=message):
        read(tmp_path, TABLE, pa.table({"town": towns, "homes": homes}), **TABLE_FORM)


def test_the_frame_of_the_records_is_no_register(tmp_path):
    records = pa.table({"home": ["h1"], "town": ["a1"]})
    with pytest.raises(SpecError, match="comes from the confidential records"):
        check(spec_in(tmp_path), Frames(records, AREAS, records))


def test_codes_are_padded_in_the_register_too(tmp_path):
    areas = pa.table({"code": ["01001", "01002"]})
    register = pa.table({"home": ["x", "y"], "town": [1001, 1002]})
    layout = {"code": {"column": "code", "width": 5}, "prefixes": {"state": 2, "town": 5}}
    prepared = prepare(spec_in(tmp_path, hierarchy=layout), Frames(hierarchy=areas))
    leaves = tabulate(prepared, pa.table({"home": ["y"]}), register).leaves
    assert np.argmax(leaves, axis=1).tolist() == [0, 1]
