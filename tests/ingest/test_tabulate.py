"""Confidential records become counts; errors about them tell nothing."""

import gzip
import subprocess
import sys
import traceback
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.confidential.counts import TrueCounts
from trellis.confidential.fingerprint import fingerprint_file, fingerprint_stream
from trellis.errors import InputError, StructureError
from trellis.ingest.frames import as_table
from trellis.ingest.records.counts import tabulate
from trellis.model import Hierarchy

TREE = Hierarchy.from_paths([("r", "a", "a1"), ("r", "a", "a2"), ("r", "b", "Ærø"), ("r", "c")])
LEAVES = TREE.codes(2).tolist()
RECORDS = {"": {}}
"""The form of a cell in which each row counts one."""


def to_csv(columns: dict) -> bytes:
    rows = zip(*columns.values(), strict=True)
    lines = [columns, *(("" if v is None else str(v) for v in row) for row in rows)]
    return "".join(",".join(line) + "\n" for line in lines).encode()


def as_file(folder, name: str, content: bytes):
    (folder / name).write_bytes(content)
    return folder / name


def as_parquet(folder, columns):
    pq.write_table(pa.table(columns), folder / "data.parquet")
    return folder / "data.parquet"


SOURCES = {
    "parquet": as_parquet,
    "csv": lambda folder, columns: as_file(folder, "data.csv", to_csv(columns)),
    "gzip": lambda folder, columns: as_file(folder, "d.csv.gz", gzip.compress(to_csv(columns))),
    "arrow": lambda _, columns: as_table(pa.table(columns)),
    "polars": lambda _, columns: as_table(pl.DataFrame(columns)),
    "pandas": lambda _, columns: as_table(pd.DataFrame(columns)),
}


@pytest.fixture(params=SOURCES)
def source(request, tmp_path):
    return lambda columns: SOURCES[request.param](tmp_path, columns)


# -- what is counted ------------------------------------------------------------------------------


def test_records_are_counted(source):
    table = source({"place": ["a2", "c", "a2", "Ærø"], "name": ["x", "y", "z", "w"]})
    assert tabulate(table, TREE, "place", RECORDS).leaves.tolist() == [[0], [2], [1], [1]]


def test_long_tables_are_added_up(source):
    table = source({"place": ["a2", "c", "a2"], "people": [10, 0, 5]})
    assert tabulate(table, TREE, "place", {"": {"people": 1}}).leaves.ravel().tolist() == [
        0, 15, 0, 0,
    ]  # fmt: skip


def test_wide_tables_give_a_cell_per_expression(source):
    table = source({"place": ["a1", "c"], "pop": [10, 7], "young": [4, 7], "odd name": [1, 2]})
    cells = {"young": {"young": 1}, "old": {"pop": 1, "young": -1}, "odd": {"odd name": 1}}
    counts = tabulate(table, TREE, "place", cells).leaves
    assert counts.tolist() == [[4, 6, 1], [0, 0, 0], [0, 0, 0], [7, 0, 2]]
    assert counts.dtype == np.int64


def test_integer_codes_are_padded_like_the_public_ones(source):
    tree = Hierarchy.from_paths([("01", "01001"), ("01", "01002")])
    counts = tabulate(source({"geoid": [1002, 1001, 1002]}), tree, "geoid", RECORDS, width=5)
    assert counts.leaves.ravel().tolist() == [1, 2]


@pytest.mark.parametrize("kind", ["parquet", "csv", "gzip", "arrow"])
def test_no_records_are_zeros(tmp_path, kind):
    nobody = {"place": pa.array([], pa.string()), "people": pa.array([], pa.int64())}
    table = SOURCES[kind](tmp_path, nobody)
    for cells in (RECORDS, {"": {"people": 1}}):
        assert tabulate(table, TREE, "place", cells).leaves.tolist() == [[0], [0], [0], [0]]


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from(LEAVES), st.integers(0, 2**40)), max_size=30))
def test_every_record_is_counted_once(rows):
    places, people = [p for p, _ in rows], [n for _, n in rows]
    table = pa.table({"place": pa.array(places, pa.string()), "n": pa.array(people, pa.int64())})
    records = tabulate(table, TREE, "place", RECORDS).leaves.ravel()
    sums = tabulate(table, TREE, "place", {"": {"n": 1}}).leaves.ravel()
    assert dict(zip(LEAVES, records.tolist(), strict=True)) == {
        leaf: Counter(places)[leaf] for leaf in LEAVES
    }
    for leaf, total in zip(LEAVES, sums.tolist(), strict=True):
        assert total == sum(n for place, n in rows if place == leaf)


@pytest.mark.parametrize(
    "dtype", [pa.uint8(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.decimal128(22, 2)]
)
def test_counts_may_be_numbers_of_any_type(dtype):
    people = pa.array([3, 5]).cast(dtype)
    table = pa.table({"place": ["a1", "c"], "people": people})
    assert tabulate(table, TREE, "place", {"": {"people": 1}}).leaves.sum() == 8


@pytest.mark.parametrize("text", ["7", " 7 ", "+7", "7.0", "7."])
def test_counts_in_text_are_read_as_people_write_them(text):
    table = pa.table({"place": ["a1"], "people": [text]})
    assert tabulate(table, TREE, "place", {"": {"people": 1}}).leaves[0, 0] == 7


@pytest.mark.parametrize("text", ["7e0", "1_000", "0x7", "1e-400", "0.9999999999999999999", "7,0"])
def test_text_that_only_a_computer_takes_for_a_whole_number_is_refused(text):
    table = pa.table({"place": ["a1"], "people": [text]})
    with pytest.raises(InputError, match="missing or unreadable"):
        tabulate(table, TREE, "place", {"": {"people": 1}})


def test_large_counts_stay_exact():
    large = 2**48 - 5
    table = pa.table({"place": ["a1", "c"], "people": [large, 3]})
    counts = tabulate(table, TREE, "place", {"": {"people": 1}}).leaves
    assert counts.ravel().tolist() == [large, 0, 0, 3]


def test_sums_beyond_64_bits_are_refused_before_they_wrap_around():
    size = 40_000
    table = pa.table({"place": ["a1"] * size, "people": pa.array([2**48] * size, pa.int64())})
    with pytest.raises(InputError, match="impossibly large counts"):
        tabulate(table, TREE, "place", {"": {"people": 1}})


@pytest.mark.parametrize("encode", [pa.array, lambda v: pa.array(v).dictionary_encode()])
def test_dictionary_columns_are_text(encode):
    table = pa.table({"place": encode(["a1", "c", "a1"]), "people": encode(["1", "2", "1"])})
    counts = tabulate(table, TREE, "place", {"": {"people": 1}})
    assert counts.leaves.ravel().tolist() == [2, 0, 0, 2]


def test_categories_of_other_libraries_are_text():
    for frame in (
        pd.DataFrame({"place": pd.Categorical(["a1", "c"])}),
        pl.DataFrame({"place": pl.Series(["a1", "c"], dtype=pl.Categorical)}),
        pl.DataFrame({"place": pl.Series(["a1", "c"], dtype=pl.Enum(["a1", "c"]))}),
    ):
        assert tabulate(as_table(frame), TREE, "place", RECORDS).leaves.sum() == 2


@pytest.mark.parametrize(
    "name", ["code", "leaf", "leaves", "joined", "source", "count_0", "count_1", "cell_0",
             "trellis_leaf", "trellis_code", "sum", 'say "x"', "SELECT"],
)  # fmt: skip
def test_columns_may_be_called_anything(name):
    """Also as the engine's tables and columns are called: `leaf` once stood for any column."""
    bystander = {"place": ["a1", "c"], name: [0, 1]}
    assert tabulate(pa.table(bystander), TREE, "place", RECORDS).leaves.ravel().tolist() == [
        1, 0, 0, 1,
    ]  # fmt: skip
    both = pa.table({name: ["a1", "c"], name + "_": [3, 4]})
    counts = tabulate(both, TREE, name, {"": {name + "_": 1}})
    assert counts.leaves.ravel().tolist() == [3, 0, 0, 4]
    counted = pa.table({"place": ["a1", "c"], name: [5, 6], "count_0_": [7, 8]})
    cells = {"x": {"count_0_": 1}, "y": {name: 1}}
    assert tabulate(counted, TREE, "place", cells).leaves.tolist() == [
        [7, 5],
        [0, 0],
        [0, 0],
        [8, 6],
    ]


# -- what is refused, and what that tells ---------------------------------------------------------

NUMBER, FRACTION, TEXT = 7_654_321, 7654.321, "canary-4711"
PLANTED = (str(NUMBER), str(FRACTION), TEXT, "654", "4711")
COUNT = {"": {"people": 1}}


def people(*values):
    return {
        "place": ["a1", "a2", "c"][: len(values)],
        "people": list(values),
        "name": [TEXT] * len(values),
    }


REFUSED = {
    "unknown area": (
        {"place": ["a1", TEXT]},
        RECORDS,
        "rows whose area is missing or is not a leaf",
    ),
    "inner area": ({"place": ["a1", "a"]}, RECORDS, "rows whose area is missing or is not a leaf"),
    "missing area": ({"place": ["a1", None]}, RECORDS, "rows whose area is missing"),
    "numbers as areas": ({"place": [NUMBER]}, RECORDS, "rows whose area is missing"),
    "fractions as areas": ({"place": [FRACTION]}, RECORDS, "holds double values; codes are text"),
    "no area column": ({"town": [TEXT]}, RECORDS, "has no column 'place'"),
    "no count column": ({"place": ["a1"], "name": [TEXT]}, COUNT, "has no column 'people'"),
    "negative": (people(-NUMBER, 1), COUNT, "'people' .* has negative counts"),
    "negative zero is none": (people(-0.25, 1.0), COUNT, "has negative counts"),
    "fractional": (people(FRACTION, 1.0), COUNT, "has fractional counts"),
    "missing": (people(NUMBER, None), COUNT, "has missing or unreadable counts"),
    "not a number": (people(float(NUMBER), float("nan")), COUNT, "has missing or unreadable"),
    "infinite": (people(float(NUMBER), float("inf")), COUNT, "has missing or unreadable"),
    "text": (people("1", TEXT), COUNT, "has missing or unreadable counts"),
    "empty text": (people("1", ""), COUNT, "has missing or unreadable counts"),
    "hexadecimal": (people("1", "0x1F"), COUNT, "has missing or unreadable counts"),
    "too large": (people(NUMBER * 10**12), COUNT, "has impossibly large counts"),
    "too large a float": (people(1e300), COUNT, "has impossibly large counts"),
    "too large together": (people(2**47, 2**47, 2**47), COUNT, "impossibly large counts"),
    "booleans": (people(True, False), COUNT, "holds boolean values, not counts"),
    "lists": (people([NUMBER]), COUNT, "not counts"),
    "structures": (people({TEXT[:6]: NUMBER}), COUNT, "holds struct values, not counts"),
    "a negative cell": (
        {"place": ["a1"], "all": [5], "part": [NUMBER]},
        {"rest": {"all": 1, "part": -1}, "part": {"part": 1}},
        "Cell 'rest' is negative in some rows",
    ),
    "a negative cell hidden in the sum": (
        {"place": ["a1", "a1"], "all": [5, NUMBER], "part": [6, 0]},
        {"rest": {"all": 1, "part": -1}, "part": {"part": 1}},
        "Cell 'rest' is negative in some rows",
    ),
}


def assert_tells_nothing(error: BaseException) -> None:
    """Neither the message nor the traceback people see quotes the records."""
    shown = "".join(traceback.format_exception(error))
    while error is not None:
        shown += str(error)
        # What a traceback would show beneath this error must be one of ours too.
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert not [planted for planted in PLANTED if planted in shown]


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_counts_is_refused_without_quoting_it(case):
    columns, cells, message = REFUSED[case]
    with pytest.raises(InputError, match=message) as refused:
        tabulate(pa.table(columns), TREE, "place", cells)
    assert_tells_nothing(refused.value)


@pytest.mark.parametrize("case", [c for c in REFUSED if c not in ("lists", "structures")])
def test_csv_files_are_refused_alike(tmp_path, case):
    columns, cells, _ = REFUSED[case]
    path = as_file(tmp_path, "data.csv", to_csv(columns))
    with pytest.raises(InputError) as refused:
        tabulate(path, TREE, "place", cells)
    assert_tells_nothing(refused.value)


UNREADABLE = {
    "no header": f"{NUMBER},{TEXT}\na1,x\n".encode(),
    "a header that is too short": f"place\n{NUMBER},{TEXT}\n{NUMBER},{TEXT}\n".encode(),
    "a title": f"Report on {TEXT}\nplace,people\na1,{NUMBER}\n".encode(),
    "a line too long": f"place,people\na1,1\na2,{NUMBER},{TEXT}\n".encode(),
    "a line too long, late": (
        "place,people\n" + "a1,1\n" * 30_000 + f"a1,{TEXT},{NUMBER}\n"
    ).encode(),
    "a quote left open": f'place,people\na1,"{TEXT}\na2,{NUMBER}\n'.encode(),
    "another encoding": f"place,people\n{TEXT}-Ærø,{NUMBER}\n".encode("latin-1"),
    "a zero byte": f"place,people\n{TEXT}\0,{NUMBER}\n".encode(),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_damaged_files_are_refused_without_quoting_them(tmp_path, case):
    """Where a header is missing, the first record stands in its place."""
    path = as_file(tmp_path, "data.csv", UNREADABLE[case])
    for cells in (COUNT, RECORDS):
        with pytest.raises(InputError) as refused:
            tabulate(path, TREE, "place", cells)
        assert_tells_nothing(refused.value)


@pytest.mark.parametrize("size", [10, 200, -30, -5])
def test_a_cut_parquet_file_is_refused_without_quoting_it(tmp_path, size):
    path = as_parquet(tmp_path, people(NUMBER, 1, 2))
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(InputError, match="could not be read") as refused:
        tabulate(path, TREE, "place", COUNT)
    assert_tells_nothing(refused.value)


def test_a_frame_that_is_none_is_refused_without_quoting_it():
    mixed = pd.DataFrame({"place": ["a1", "a2"], "people": [NUMBER, TEXT]})
    with pytest.raises(InputError, match="A DataFrame cannot be read as a table") as refused:
        as_table(mixed)
    assert_tells_nothing(refused.value)


def test_a_frame_with_a_record_for_a_header_is_refused_without_quoting_it():
    """What `read_csv` of pandas or Polars makes of a file without a header."""
    frame = pd.DataFrame({TEXT: ["a1"], str(NUMBER): [3]})
    with pytest.raises(InputError, match="has no column 'place'") as refused:
        tabulate(as_table(frame), TREE, "place", RECORDS)
    assert_tells_nothing(refused.value)


def test_a_frame_with_two_columns_of_one_name_is_refused():
    """The engine would rename one of them, and count the other."""
    table = pa.table([["a1"], [1], [NUMBER]], names=["place", "people", "people"])
    with pytest.raises(InputError, match="two columns with the same name") as refused:
        tabulate(table, TREE, "place", COUNT)
    assert_tells_nothing(refused.value)


def test_text_that_is_no_text_is_refused_without_quoting_it():
    """Bytes that claim to be UTF-8 reach the engine, which quotes them in its message."""
    raw = pa.array([TEXT.encode() + b"\xff", b"a1"]).view(pa.string())
    with pytest.raises(InputError) as refused:
        tabulate(pa.table({"place": raw, "people": [NUMBER, 1]}), TREE, "place", COUNT)
    assert_tells_nothing(refused.value)


def test_the_search_would_find_an_error_that_quotes():
    """A mutation: the engine's own messages do quote, which is why they stay inside."""
    try:
        try:
            raise ValueError(f"could not convert {TEXT}")
        except ValueError:
            raise InputError("clean")  # noqa: B904  # the point of the test
    except InputError as error:
        with pytest.raises(AssertionError):
            assert_tells_nothing(error)


INTERRUPTED = """
import os, signal
from threading import Timer
import pyarrow as pa
from trellis.ingest.engines import open_source

signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background ignore it
with open_source(pa.table({"place": ["a1"]})) as reader:
    Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        reader.query("SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b")
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_ctrl_c_in_the_engine_is_an_interrupt():
    """The engine would turn it into an error of its own, with a traceback."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "interrupted\n"


# -- true counts and fingerprints -----------------------------------------------------------------


def test_true_counts_show_no_number():
    assert str(NUMBER) not in repr(TrueCounts(np.array([[NUMBER]])))


@pytest.mark.parametrize(
    ("leaves", "message"),
    [
        (np.array([1, 2]), "leaves x cells"),
        (np.array([[1.0]]), "whole numbers"),
        (np.array([[-NUMBER]]), "must not be negative"),
    ],
)
def test_true_counts_are_whole_and_not_negative(leaves, message):
    with pytest.raises(StructureError, match=message) as refused:
        TrueCounts(leaves)
    assert_tells_nothing(refused.value)


def test_fingerprints_depend_on_every_byte_and_on_the_key(tmp_path):
    path = as_file(tmp_path, "data.csv", b"x" * 5_000_000)
    first = fingerprint_file(path, b"key")
    with path.open("rb") as file:
        assert fingerprint_stream(file, b"key") == first
    assert fingerprint_file(path, b"another") != first
    path.write_bytes(b"x" * 4_999_999 + b"y")
    assert fingerprint_file(path, b"key") != first
