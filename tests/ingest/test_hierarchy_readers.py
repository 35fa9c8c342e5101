"""The public tree of areas, from files and frames in three layouts."""

import gzip

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.errors import InputError, StructureError
from trellis.ingest.frames import as_table
from trellis.ingest.public.hierarchies import from_level_columns, from_parent_child, from_prefixes
from trellis.ingest.public.parent_child import paths_from_parents
from trellis.model import Hierarchy

COLUMNS = {
    "nation": ["r", "r", "r", "r"],
    "state": ["b", "a", "a", "c"],
    "town": ["07", "a2", "Ærø", None],
}
LEVELS = list(COLUMNS)


def to_csv(columns: dict, separator: str = ",") -> str:
    rows = zip(*columns.values(), strict=True)
    lines = [columns, *(("" if v is None else str(v) for v in row) for row in rows)]
    return "".join(separator.join(line) + "\n" for line in lines)


def as_parquet(folder, columns):
    pq.write_table(pa.table(columns), folder / "areas.parquet")
    return folder / "areas.parquet"


def as_csv(folder, columns):
    (folder / "areas.csv").write_text(to_csv(columns), encoding="utf-8")
    return folder / "areas.csv"


def as_semicolons(folder, columns):
    (folder / "areas.csv").write_text(to_csv(columns, ";"), encoding="utf-8")
    return folder / "areas.csv"


def as_tsv(folder, columns):
    (folder / "areas.TSV").write_text(to_csv(columns, "\t"), encoding="utf-8")
    return folder / "areas.TSV"


def as_gzip(folder, columns):
    (folder / "areas.csv.gz").write_bytes(gzip.compress(to_csv(columns).encode()))
    return folder / "areas.csv.gz"


def as_arrow(_folder, columns):
    return as_table(pa.table(columns))


def as_polars(_folder, columns):
    return as_table(pl.DataFrame(columns))


def as_pandas(_folder, columns):
    return as_table(pd.DataFrame(columns))


SOURCES = [as_parquet, as_csv, as_semicolons, as_tsv, as_gzip, as_arrow, as_polars, as_pandas]


@pytest.fixture(params=SOURCES, ids=lambda f: f.__name__)
def source(request, tmp_path):
    return lambda columns: request.param(tmp_path, columns)


# -- every source, every layout -------------------------------------------------------------------


def test_level_columns(source):
    tree = from_level_columns(source(COLUMNS), LEVELS)
    assert tree.level_names == ("nation", "state", "town")
    assert tree.codes("state").tolist() == ["a", "b", "c"]
    assert tree.codes("town").tolist() == ["a2", "Ærø", "07", "c"]  # within a, b, c
    assert tree.passes_through[2].tolist() == [False, False, False, True]


def test_prefixes(source):
    tree = from_prefixes(source({"geoid": ["02201", "01101", "01102"]}), "geoid",
                         {"state": 2, "county": 3, "block": 5}, root=("nation", "US"))  # fmt: skip
    assert tree.level_names == ("nation", "state", "county", "block")
    assert [codes.tolist() for codes in tree.node_codes] == [
        ["US"], ["01", "02"], ["011", "022"], ["01101", "01102", "02201"],
    ]  # fmt: skip


def test_parent_child(source):
    pairs = {"child": ["a1", "a", "b", "a2"], "parent": ["a", "r", "r", "a"]}
    tree = from_parent_child(source(pairs), "child", "parent", ["nation", "state", "town"])
    assert [codes.tolist() for codes in tree.node_codes] == [["r"], ["a", "b"], ["a1", "a2", "b"]]
    assert tree.passes_through[2].tolist() == [False, False, True]


# -- codes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [pa.int8(), pa.int64(), pa.uint32(), pa.string()])
def test_codes_of_digits_are_padded_with_zeros(dtype):
    values = ["1", "12", "123"] if dtype == pa.string() else [1, 12, 123]
    table = pa.table({"geoid": pa.array(values, dtype)})
    tree = from_prefixes(table, "geoid", {"state": 2, "block": 5}, 5, ("nation", "US"))
    assert tree.codes("block").tolist() == ["00001", "00012", "00123"]


def test_only_digits_are_padded_and_nothing_is_cut():
    for code in ("-1", "A1", "１", "1.5", "123456"):
        with pytest.raises(InputError, match="does not have the 5 characters"):
            from_prefixes(pa.table({"c": [code]}), "c", {"block": 5}, 5)


def test_parents_and_children_are_padded_alike():
    table = pa.table({"child": [1, 2, 10], "parent": [None, 1, 1]})
    tree = from_parent_child(table, "child", "parent", width=3)
    assert [codes.tolist() for codes in tree.node_codes] == [["001"], ["002", "010"]]


def test_csv_codes_keep_their_zeros_and_signs(tmp_path):
    path = as_csv(tmp_path, {"n": ["r"] * 5, "t": ["007", "+7", "7e3", "1_0", "NULL"]})
    tree = from_level_columns(path, ["n", "t"])
    assert tree.codes("t").tolist() == sorted(["007", "+7", "7e3", "1_0", "NULL"])


def test_prefixes_count_characters_of_any_alphabet():
    table = pa.table({"c": ["北京东城", "北京西城", "上海黄浦"]})
    tree = from_prefixes(table, "c", {"city": 2, "district": 4}, root=("country", "中国"))
    assert tree.codes("city").tolist() == ["上海", "北京"]


@pytest.mark.parametrize("name", ["code", "level_0", "source", "select", 'a "b"', "Größe 北京"])
def test_columns_may_be_called_anything(name):
    tree = from_prefixes(pa.table({name: [1, 2]}), name, {"s": 2, "b": 3}, 3)
    assert tree.codes("b").tolist() == ["001", "002"]
    table = pa.table({"level_1": ["r", "r"], name + "x": ["a", "b"]})
    assert from_level_columns(table, ["level_1", name + "x"]).codes(1).tolist() == ["a", "b"]


def test_child_and_parent_may_be_called_each_other():
    table = pa.table({"child": ["r", "r"], "parent": ["a", "b"]})
    tree = from_parent_child(table, child="parent", parent="child")
    assert tree.codes(1).tolist() == ["a", "b"]


# -- files ----------------------------------------------------------------------------------------


def test_a_name_is_not_a_pattern(tmp_path):
    """DuckDB expands `*`, `?` and `[..]`, and would read the neighbours of such a file."""
    for name in ("areas[1].csv", "ar*as?.csv"):
        (tmp_path / name).write_text("n\nright\n")
    (tmp_path / "areas1.csv").write_text("n\nwrong\n")
    for name in ("areas[1].csv", "ar*as?.csv"):
        assert from_level_columns(tmp_path / name, ["n"]).codes(0).tolist() == ["right"]


def test_quotes_in_a_path_are_part_of_it(tmp_path):
    folder = tmp_path / "it's; DROP TABLE"
    folder.mkdir()
    path = as_csv(folder, {"n": ["r"]})
    assert from_level_columns(path, ["n"]).sizes == (1,)


def test_folders_like_partitions_add_no_columns(tmp_path):
    folder = tmp_path / "town=x"
    folder.mkdir()
    with pytest.raises(InputError, match=r"has no column 'town'\. It has n"):
        from_level_columns(as_csv(folder, {"n": ["r"]}), ["n", "town"])


BAD_FILES = {
    "missing.csv": (None, "There is no file"),
    "folder.csv": ("folder", "There is no file"),
    "areas.xlsx": (b"", "file type must be one of .parquet"),
    "areas": (b"", "file type must be one of"),
    "text.parquet": (b"n,t\nr,a\n", "could not be read"),
    "plain.csv.gz": (b"n,t\nr,a\n", "could not be read"),
    "latin.csv": ("n,t\nr,Ærø\n".encode("latin-1"), "could not be read"),
    "empty.csv": (b"", "could not be read"),
    "header.csv": (b"n,t\n", "empty"),
    "wide.csv": (b"n,t\nr,a,5\nr,b,6\n", "has no column 'n'|could not be read"),
    "title.csv": (b"My areas\nn,t\nr,a\nr,b\n", "has no column 'n'|could not be read"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_files_that_hold_no_table_are_refused(tmp_path, name):
    content, message = BAD_FILES[name]
    if content == "folder":
        (tmp_path / name).mkdir()
    elif content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises((InputError, StructureError), match=message):
        from_level_columns(tmp_path / name, ["n", "t"])


def test_a_late_line_that_does_not_fit_is_refused(tmp_path):
    path = tmp_path / "areas.csv"
    path.write_text("n,t\n" + "".join(f"r,{i}\n" for i in range(50_000)) + "r,x,extra\n")
    with pytest.raises(InputError, match="could not be read"):
        from_level_columns(path, ["n", "t"])


@pytest.mark.parametrize("frame", [5, object(), [1, 2], "areas", pd.DataFrame({"a": [1, "x"]})])
def test_what_is_no_frame_is_refused(frame):
    with pytest.raises(InputError, match="cannot be read as a table"):
        as_table(frame)


# -- trees that are none --------------------------------------------------------------------------


def test_wrong_columns_are_named_with_the_nearest_or_all_there_are():
    table = pa.table(COLUMNS)
    with pytest.raises(InputError, match=r"no column 'bezirk'\. It has nation, state, town"):
        from_level_columns(table, ["nation", "bezirk"])
    with pytest.raises(InputError, match=r"no column 'states'\. Did you mean 'state'"):
        from_level_columns(table, ["nation", "states"])
    with pytest.raises(InputError, match="no column 'geoid'"):
        from_prefixes(table, "geoid", {"state": 2})
    with pytest.raises(InputError, match="no column 'parent'"):
        from_parent_child(table, "town", "parent")


@pytest.mark.parametrize(
    "values", [[1.0], [b"x"], [{"a": 1}], [[1]], pa.array([1], pa.decimal128(5, 2))]
)
def test_codes_are_text_or_whole_numbers(values):
    with pytest.raises(InputError, match="codes are text or whole numbers"):
        from_level_columns(pa.table({"n": values}), ["n"])


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (["01001", "0100"], "Code '0100' in column 'geoid' .* does not have the 5 characters"),
        (["01001", "010011"], "Code '010011'"),
        (["01001", ""], "Code ''"),
        (["01001", None], "An empty code in column 'geoid'"),
        (["0" * 5000], "does not have the 5 characters"),
    ],
)
def test_codes_of_another_length_than_the_last_prefix_are_refused(codes, message):
    with pytest.raises(InputError, match=message) as refused:
        from_prefixes(pa.table({"geoid": codes}), "geoid", {"state": 2, "block": 5})
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("children", "parents", "message"),
    [
        (["a", "a"], ["r", "r"], "'a' is listed twice"),
        (["r", "r"], [None, ""], "'r' is listed twice"),
        (["a", "a"], ["r", "s"], "'a' has two parents"),
        (["a", "b"], ["b", "a"], "its own ancestor"),
        (["a"], ["a"], "'a' is its own ancestor"),
        (["r", "a", "b", "c"], [None, "c", "a", "b"], "its own ancestor"),
        (["a", None], ["r", "r"], "no child code"),
        (["a", ""], ["r", "r"], "no child code"),
    ],
)
def test_parents_that_make_no_tree_are_refused(children, parents, message):
    with pytest.raises(InputError, match=message):
        paths_from_parents(children, parents)
    table = pa.table({"child": children, "parent": parents})
    with pytest.raises(InputError, match=message):
        from_parent_child(table, "child", "parent")


def test_paths_lead_from_the_root_to_each_leaf():
    paths = paths_from_parents(["a1", "a", "b"], ["a", "r", "r"])
    assert sorted(paths) == [("r", "a", "a1"), ("r", "b")]
    listed = paths_from_parents(["r", "a"], [None, "r"])  # a root with a row of its own
    assert listed == [("r", "a")]


def test_a_lone_root_has_no_parent_at_all():
    tree = from_parent_child(pa.table({"child": ["r"], "parent": [None]}), "child", "parent")
    assert tree.sizes == (1,)


def test_a_deep_chain_is_traced_without_recursion():
    depth = 5_000
    children = [str(i) for i in range(1, depth)]
    parents = [str(i) for i in range(depth - 1)]
    [path] = paths_from_parents(children[::-1], parents[::-1])
    assert len(path) == depth


def test_several_roots_need_one_above_them():
    table = pa.table({"child": ["a", "b"], "parent": ["r", "s"]})
    with pytest.raises(StructureError, match="2 roots"):
        from_parent_child(table, "child", "parent")
    tree = from_parent_child(table, "child", "parent", ["state", "town"], root=("nation", "X"))
    assert tree.level_names == ("nation", "state", "town")
    assert from_parent_child(table, "child", "parent", root=("nation", "X")).n_levels == 3


def test_areas_listed_twice_are_refused_in_every_layout():
    with pytest.raises(StructureError, match="Leaf 'a' occurs twice"):
        from_level_columns(pa.table({"n": ["r", "r"], "t": ["a", "a"]}), ["n", "t"])
    with pytest.raises(StructureError, match="Leaf '011' occurs twice"):
        from_prefixes(pa.table({"c": ["011", "011"]}), "c", {"s": 2, "b": 3})
    with pytest.raises(StructureError, match="'x' occurs twice on level 't'"):
        from_level_columns(
            pa.table({"n": ["r"] * 2, "s": ["a", "b"], "t": ["x", "x"]}), ["n", "s", "t"]
        )


def test_levels_must_fit_the_depth_of_the_tree():
    table = pa.table({"child": ["a", "b"], "parent": ["r", "a"]})
    with pytest.raises(StructureError, match="2 level names for paths of 3"):
        from_parent_child(table, "child", "parent", ["nation", "state"])
    with pytest.raises(StructureError, match="'block' has no areas of its own"):
        from_parent_child(table, "child", "parent", ["nation", "state", "town", "block"])


# -- the quick way through the engine against the plain one ----------------------------------------

codes = st.text("ab0 é上\U0001f600", min_size=1, max_size=3)
ragged = st.lists(st.lists(codes, min_size=0, max_size=3), min_size=1, max_size=12)


def outcome(build):
    try:
        tree = build()
    except StructureError as error:
        return str(error)
    parts = (tree.node_codes, tree.child_start, tree.passes_through)
    return [[array.tolist() for array in part] for part in parts]


@given(ragged)
def test_columns_give_the_tree_or_the_error_that_paths_give(rows):
    paths = [("r", *row) for row in rows]
    depth = max(map(len, paths))
    names = [f"l{i}" for i in range(depth)]
    columns = {name: [p[i] if i < len(p) else None for p in paths] for i, name in enumerate(names)}
    table = pa.table({name: pa.array(column, pa.string()) for name, column in columns.items()})
    quick = outcome(lambda: from_level_columns(table, names))
    assert quick == outcome(lambda: Hierarchy.from_paths(paths, names))


@given(st.lists(st.text("ab0é上\U0001f600", min_size=4, max_size=4), min_size=1, max_size=30))
def test_prefixes_give_the_tree_or_the_error_that_paths_give(listed):
    paths = [("r", code[:1], code[:3], code) for code in listed]
    table = pa.table({"code": listed})
    prefixes = {"x": 1, "y": 3, "z": 4}
    quick = outcome(lambda: from_prefixes(table, "code", prefixes, root=("top", "r")))
    assert quick == outcome(lambda: Hierarchy.from_paths(paths, ["top", "x", "y", "z"]))
