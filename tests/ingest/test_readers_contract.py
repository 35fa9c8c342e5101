"""Every reader gives the counts and the refusals of the plain one, and no other words."""

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.plain_reader import open_plainly
from readers import READERS
from trellis.errors import InputError
from trellis.ingest.confidential_log import confidential_log
from trellis.ingest.engines import open_source, reading_with
from trellis.ingest.public.areas import AreaColumns, read_category
from trellis.ingest.public.constraints import BoundTable, read_bounds
from trellis.ingest.public.hierarchies import from_level_columns, from_parent_child, from_prefixes
from trellis.ingest.public.priors import Crosswalk, Prior, read_prior
from trellis.ingest.public.registers import read_group_numbers, read_units
from trellis.ingest.records.columns import check_columns
from trellis.ingest.records.counts import tabulate
from trellis.ingest.records.flows import TripColumns, TripRules, read_flows
from trellis.ingest.records.group_sizes import (
    RecordColumns,
    Sizes,
    TableColumns,
    sizes_from_records,
    sizes_from_table,
)
from trellis.ingest.records.histograms import tabulate_long, tabulate_wide
from trellis.ingest.terms import Number, Rows
from trellis.model import Hierarchy, Schema
from trellis.model.tables.constraints import Sense
from trellis.model.trees.flows import FlowTree

TREE = Hierarchy.from_paths([("r", "01", "011"), ("r", "01", "012"), ("r", "02", "021")])
FLOW_TREE = FlowTree.of("destination", TREE, TREE, Schema({"mode": ["car", "bus"]}))
SCHEMA = Schema({"sex": ["f", "m"], "age": ["0", "1", "2"]})
UNITS = pa.table({"unit": ["h1", "h2", "h3", "h4"], "leaf": [0, 0, 1, 2]})


@pytest.fixture(scope="module", params=[name for name in READERS if name != "plain"])
def reader(request):
    """A reader that is compared with the plain one."""
    return READERS[request.param]


@pytest.fixture(scope="module", params=READERS)
def any_reader(request):
    return READERS[request.param]


# -- tables with and without faults ---------------------------------------------------------------

CODES = st.sampled_from(["011", "012", "021"])
ODD_CODES = st.one_of(CODES, st.sampled_from(["11", "01", "zz", "", None]))
UNIT_CODES = st.sampled_from(["h1", "h2", "h3"])
WHOLE = st.integers(0, 5)
ODD_NUMBERS = {
    pa.int64(): st.one_of(WHOLE, st.sampled_from([-3, 2**49, 2**62, None])),
    pa.float64(): st.one_of(
        st.sampled_from([0.0, 1.0, 4.0]),
        st.sampled_from([-1.0, 2.25, 1e300, float("nan"), float("inf"), -float("inf"), None]),
    ),
    pa.string(): st.one_of(
        st.sampled_from(["0", "1", " 2 ", "3.", "4.0"]),
        st.sampled_from(["x", "-1", "2.25", "1_000", "1e2", "", None]),
    ),
    pa.decimal128(12, 2): st.one_of(st.sampled_from([1, 2]), st.just(None)),
}


def numbers(clean):
    if clean:
        return st.tuples(st.sampled_from([pa.int64(), pa.float64(), pa.string()]), st.just(WHOLE))
    return st.sampled_from(list(ODD_NUMBERS.items()))


@st.composite
def tables(draw, **columns):
    """Rows of columns, most of them without a fault; as a frame, a Parquet or a CSV file."""
    size = draw(st.integers(0, 8))
    clean = draw(st.booleans())
    table = {}
    for name, (good, odd) in columns.items():
        values = good if clean else odd
        if values is None:
            dtype, of = draw(numbers(clean))
            found = draw(st.lists(of, min_size=size, max_size=size))
            table[name] = pa.array(found, pa.int64() if clean else dtype)
            if clean:
                table[name] = table[name].cast(dtype)
        else:
            table[name] = pa.array(
                draw(st.lists(values, min_size=size, max_size=size)), pa.string()
            )
    return pa.table(table), draw(st.sampled_from(["frame", "parquet", "csv"]))


NUMBERS = (None, None)
AREAS = (CODES, ODD_CODES)


def as_source(folder, table, form):
    path = Path(folder) / f"records.{form}"
    if form == "parquet":
        pq.write_table(table, path)
    elif form == "csv":
        pa_csv.write_csv(table, path)
    return table if form == "frame" else path


def outcome(engine, read):
    """What comes back, or the words of the refusal and of the confidential log."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.txt"
        try:
            with reading_with(engine), confidential_log(log):
                return read()
        except InputError as error:
            words = [fault.replace(folder, "") for fault in error.faults]
            return type(error), words, log.read_text() if log.exists() else ""


def agrees(engine, table, form, read):
    with tempfile.TemporaryDirectory() as folder:
        source = as_source(folder, table, form)
        assert outcome(engine, lambda: read(source)) == outcome(open_plainly, lambda: read(source))


# -- records --------------------------------------------------------------------------------------

FORMS = {"young": {"u": 1}, "old": {"n": 1, "u": -1}, "rows": {}}


@settings(max_examples=30)
@given(given_table=tables(area=AREAS, n=NUMBERS, u=NUMBERS), width=st.sampled_from([None, 3]))
def test_wide_tables_with_forms(reader, given_table, width):
    agrees(reader, *given_table, lambda s: tabulate(s, TREE, "area", FORMS, width).leaves.tolist())


@settings(max_examples=30)
@given(given_table=tables(area=AREAS, n=NUMBERS))
def test_long_tables_with_counts(reader, given_table):
    agrees(
        reader, *given_table, lambda s: tabulate(s, TREE, "area", {"": {"n": 1}}).leaves.tolist()
    )


CATEGORIES = {
    "sex": (st.sampled_from(["f", "m"]), st.sampled_from(["f", "m", "x", None])),
    "age": (st.sampled_from(["0", "1", "2"]), st.sampled_from(["0", "1", "2", "3", ""])),
}


def repr_of(found):
    """The arrays of a true object, whose text form shows nothing."""
    return [np.asarray(getattr(found, name)).tolist() for name in found.__dataclass_fields__]


@settings(max_examples=30)
@given(
    given_table=tables(area=AREAS, n=NUMBERS, **CATEGORIES),
    count=st.sampled_from([None, "n"]),
)
def test_histograms_with_attributes(reader, given_table, count):
    agrees(reader, *given_table, lambda s: repr_of_histogram(s, count))


def repr_of_histogram(source, count):
    columns = {name: name for name in SCHEMA.names}
    return repr_of(tabulate_long(source, TREE, SCHEMA, "area", columns, count).leaves)


@settings(max_examples=20)
@given(given_table=tables(area=AREAS, n=NUMBERS, u=NUMBERS))
def test_wide_histograms(reader, given_table):
    cells = {0: ("young", {"u": 1}), 4: ("old", {"n": 1, "u": -1})}
    agrees(
        reader,
        *given_table,
        lambda s: repr_of(tabulate_wide(s, TREE, SCHEMA, "area", cells).leaves),
    )


TRIPS = {
    "home": AREAS,
    "work": AREAS,
    "person": (UNIT_CODES, st.sampled_from(["h1", "h2", None])),
    "mode": (st.sampled_from(["car", "bus"]), st.sampled_from(["car", "bus", "foot", None])),
    "n": NUMBERS,
}


def trips(source, count, unit, attributes, rules):
    modes = {"mode": ["car", "bus"]} if attributes else {}
    columns = TripColumns("home", "work", count, unit, modes)
    flows = read_flows(source, FLOW_TREE, columns, rules)
    cells = np.zeros_like(flows.origin) if flows.cell is None else flows.cell
    keys = zip(flows.origin.tolist(), flows.destination.tolist(), cells.tolist(), strict=True)
    return dict(zip(keys, flows.count.tolist(), strict=True))


RULES = st.builds(TripRules, most=st.integers(1, 4), exactly=st.booleans(), distinct=st.booleans())


@settings(max_examples=50)
@given(
    given_table=tables(**TRIPS),
    count=st.sampled_from([None, "n"]),
    unit=st.sampled_from([None, "person"]),
    attributes=st.booleans(),
    rules=RULES,
)
def test_trips(reader, given_table, count, unit, attributes, rules):
    agrees(reader, *given_table, lambda s: trips(s, count, unit, attributes, rules))


CLEAN_TRIPS = st.lists(
    st.fixed_dictionaries({"home": CODES, "work": CODES, "person": UNIT_CODES, "n": WHOLE}),
    min_size=1,
    max_size=12,
).map(pa.Table.from_pylist)


def trips_by_pair(table, *, distinct, count):
    pairs = Counter()
    for row in table.to_pylist():
        pairs[row["home"], row["work"]] += row["n"] if count else 1
    return Counter({pair: 1 for pair, n in pairs.items() if n}) if distinct else pairs


@settings(max_examples=30)
@given(
    table=CLEAN_TRIPS,
    count=st.sampled_from([None, "n"]),
    distinct=st.booleans(),
    most=st.integers(1, 4),
)
def test_caps_leave_each_unit_its_own_trips_up_to_the_bound(
    any_reader, table, count, distinct, most
):
    """Which trips are kept is for the engine to choose; how many, and whose, is not."""
    rules = TripRules(most, distinct=distinct, cap=True)
    codes, alone = TREE.codes(2).tolist(), Counter()
    with reading_with(any_reader):
        for unit in table["person"].unique():
            own = table.filter(pc.equal(table["person"], unit))
            whole = trips_by_pair(own, distinct=distinct, count=count)
            kept = trips(own, count, "person", False, rules)
            assert sum(kept.values()) == min(most, whole.total())
            assert all(n <= whole[codes[o], codes[d]] for (o, d, _), n in kept.items())
            alone.update(kept)
        together = trips(table, count, "person", False, rules)
    assert together == alone, "what is kept of a unit depends on its own trips alone"


@settings(max_examples=30)
@given(
    given_table=tables(**TRIPS),
    count=st.sampled_from([None, "n"]),
    attributes=st.booleans(),
    distinct=st.booleans(),
)
def test_caps_that_bind_nobody_and_their_refusals(reader, given_table, count, attributes, distinct):
    rules = TripRules(2**50, distinct=distinct, cap=True)
    agrees(reader, *given_table, lambda s: trips(s, count, "person", attributes, rules))


@settings(max_examples=30)
@given(
    given_table=tables(
        home=(UNIT_CODES, st.sampled_from(["h1", "h2", "h9", None])), area=AREAS, n=NUMBERS
    ),
    area=st.sampled_from([None, "area"]),
    quantity=st.sampled_from([None, "n"]),
    cap=st.integers(1, 6),
    top_code=st.booleans(),
)
def test_group_sizes_from_records(reader, given_table, area, quantity, cap, top_code):
    columns = RecordColumns("home", area, quantity, max_quantity=3)
    sizes = Sizes(cap, top_code)
    agrees(
        reader,
        *given_table,
        lambda s: sizes_from_records(s, TREE, UNITS, columns, sizes).leaves.tolist(),
    )


@settings(max_examples=30)
@given(
    given_table=tables(area=AREAS, n=NUMBERS, u=NUMBERS),
    cap=st.integers(1, 6),
    top_code=st.booleans(),
    declared=st.lists(st.integers(0, 9), min_size=3, max_size=3),
)
def test_group_sizes_from_a_table(reader, given_table, cap, top_code, declared):
    columns, sizes = TableColumns("area", "n", "u"), Sizes(cap, top_code)
    agrees(
        reader,
        *given_table,
        lambda s: sizes_from_table(s, TREE, np.array(declared), columns, sizes).leaves.tolist(),
    )


@settings(max_examples=30)
@given(given_table=tables(area=AREAS, n=NUMBERS), numbers=st.sampled_from(["n", "m", "area"]))
def test_columns_are_checked(reader, given_table, numbers):
    agrees(reader, *given_table, lambda s: check_columns(s, ["area"], [numbers], rows_too=True))


# -- public tables --------------------------------------------------------------------------------

LEVELS = ["r", "01", "011", "012", "02", "021", None]


@settings(max_examples=30)
@given(
    given_table=tables(
        a=(st.just("r"), st.sampled_from(LEVELS)),
        b=(st.sampled_from(["01", "02"]), st.sampled_from(LEVELS)),
    ),
    read=st.sampled_from(["columns", "prefixes", "parents"]),
)
def test_hierarchies(reader, given_table, read):
    def found(source):
        if read == "columns":
            return codes_of(from_level_columns(source, ["a", "b"]))
        if read == "prefixes":
            return codes_of(from_prefixes(source, "b", {"x": 1, "y": 2}, 2, ("top", "all")))
        return codes_of(from_parent_child(source, "b", "a", root=("top", "all")))

    def quiet(source):
        try:
            return found(source)
        except Exception as error:
            return type(error), str(error)

    agrees(reader, *given_table, quiet)


def codes_of(hierarchy):
    return [hierarchy.codes(level).tolist() for level in range(len(hierarchy.level_names))]


@settings(max_examples=30)
@given(
    given_table=tables(
        area=AREAS,
        entity=(st.sampled_from(["x", "y"]), st.sampled_from(["x", "y", "", "no", None])),
    ),
    skip=st.booleans(),
)
def test_areas_of_interest(reader, given_table, skip):
    columns = AreaColumns("area", "entity", "level_2", outside=("no",), skip_unknown=skip)
    agrees(reader, *given_table, lambda s: repr_of(read_category(s, TREE, "c", columns)))


@settings(max_examples=30)
@given(given_table=tables(area=AREAS, sex=CATEGORIES["sex"], n=NUMBERS))
def test_bounds(reader, given_table):
    def found(source):
        table = BoundTable("few", source, "level_2", "area", "sex", "n")
        return read_bounds(table, Sense.AT_MOST, TREE, SCHEMA).bound.tolist()

    agrees(reader, *given_table, found)


@settings(max_examples=30)
@given(given_table=tables(home=(UNIT_CODES, ODD_CODES), area=AREAS, n=NUMBERS))
def test_registers(reader, given_table):
    agrees(reader, *given_table, lambda s: read_group_numbers(s, TREE, "area", "n").tolist())
    agrees(reader, *given_table, lambda s: first_words(read_units, s, TREE, "home", "area"))


def first_words(read, *args):
    """Which of several groups at fault is named is for the engine to choose."""
    try:
        return read(*args).to_pydict()
    except InputError as error:
        return str(error).split("'")[0]


@settings(max_examples=30)
@given(
    given_table=tables(area=AREAS, n=NUMBERS, u=NUMBERS),
    zero=st.booleans(),
    over=st.booleans(),
)
def test_priors(reader, given_table, zero, over):
    walk = Crosswalk(pa.table({"old": ["011", "012"], "new": ["012", "021"]}), "old", "new", None)

    def found(source):
        prior = Prior(source, "area", [{"u": 1}, {"n": 1}], walk if over else None, zero)
        return read_prior(prior, TREE, None).tolist()

    agrees(reader, *given_table, found)


# -- names, types and the sample ------------------------------------------------------------------


def test_types_have_the_same_words(reader):
    table = pa.table(
        {
            "t": ["x"], "i": [1], "b": [True], "f": [1.5], "h": pa.array([1.5], pa.float32()),
            "s": pa.array([1], pa.uint8()), "m": pa.array([1], pa.decimal128(5, 1)),
            "st": [{"a": 1}], "d": pa.array([1], pa.date32()),
        }
    )  # fmt: skip
    with reader(table) as opened, open_plainly(table) as plain:
        assert opened.types == plain.types
        assert opened.sample(5)[:3] == plain.sample(5)[:3]
        assert (opened.name, opened.has_schema) == (plain.name, plain.has_schema)


@pytest.mark.parametrize("form", ["frame", "parquet", "csv"])
def test_missing_columns_are_told_alike(reader, tmp_path, form):
    source = as_source(tmp_path, pa.table({"Area": ["011"], "n": [1]}), form)
    for column in ("area", "Area ", "other"):

        def read(column=column):
            return tabulate(source, TREE, column, {"": {}})

        assert outcome(reader, read) == outcome(open_plainly, read)


def test_the_largest_rows(any_reader):
    table = pa.table({"n": [3, 9, 1, 7]})
    with any_reader(table) as opened:
        found = opened.largest(Rows({"n": Number("n")}), ["n"], 2)
    assert found.to_pydict() == {"row": [2, 4], "number": [9, 7]}


def test_the_engine_is_chosen_for_a_block(any_reader):
    with (
        reading_with(any_reader),
        open_source(pa.table({"a": [1]})) as opened,
        any_reader(pa.table({"a": [1]})) as direct,
    ):
        assert type(opened) is type(direct)
