"""One query has one name, whatever the order; and a category may be called anything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import trellis
from histogram_release_worlds import SCHEMA, histogram_plan, problems, shares, write_histogram_world
from trellis.cli.app import app
from trellis.errors import SpecError
from trellis.model.tables.queries import named_query, parse_query
from trellis.spec.sections.cells import join_cell, split_cell
from worlds import REMOVE

# -- queries ---------------------------------------------------------------------------------------


def test_attributes_stand_in_the_order_of_the_schema():
    for name in ("adult * sex", "sex*adult", " sex * adult "):
        assert named_query(SCHEMA, name).name == "adult * sex"
    for name in ("total", "detailed", "age * sex"):
        assert named_query(SCHEMA, name) == parse_query(SCHEMA, name)
    assert parse_query(SCHEMA, "sex * adult").name == "sex * adult"  # as older plans have it


def test_levels_that_name_a_query_in_two_orders_have_one():
    plan = histogram_plan(
        strategy=shares(
            {
                "default": {"adult * sex": "1/2", "detailed": "1/2"},
                "town": {"sex * adult": "1/2", "detailed": "1/2"},
            }
        ),
        tables={"default": ["sex * adult"]},
        passes=("sex * adult",),
    )
    assert {query.query for query in plan.queries if query.noise} == {"adult * sex", "detailed"}
    assert {query for _, query in plan.design.tables} == {"adult * sex"}
    assert plan.design.passes == ("adult * sex",)


def test_tables_that_name_a_query_in_two_orders_are_refused():
    with pytest.raises(SpecError, match=r"output\.tables\.nation lists 'sex \* adult' twice"):
        histogram_plan(tables={"default": ["adult * sex", "sex * adult"]})


def test_plan_lists_a_query_once_and_readers_find_it_in_any_order(tmp_path):
    spec = write_histogram_world(tmp_path, output={"tables": {"default": ["sex * adult"]}})
    done = CliRunner().invoke(app, ["plan", str(spec)])
    assert done.exit_code == 0
    assert "sex * adult" not in done.stdout
    release = trellis.run(trellis.Spec.load(spec))
    assert release.table("town", "sex * adult").equals(release.table("town", "adult * sex"))
    assert release.measurement("nation", "sex * adult").num_rows == 4
    assert not problems(release.path)


def test_targets_and_weights_name_queries_in_any_order(tmp_path):
    spec = write_histogram_world(
        tmp_path,
        strategy={"optimal": {"weights": {"state": {"sex * adult": 3}}}},
        accuracy=[{"level": "state", "query": "sex * adult", "within": 90}],
    )
    assert trellis.plan(trellis.Spec.load(spec)).queries


# -- cells of a wide table -------------------------------------------------------------------------

CATEGORIES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1)


@given(st.lists(CATEGORIES, min_size=1, max_size=4))
def test_any_categories_can_be_named(categories):
    assert split_cell(join_cell(categories)) == categories


ODD = {"schema": {"answer": ["yes, both", 'so "so"'], "sex": ["f", "m"]}, "recodes": REMOVE,
       "strategy": REMOVE, "output": REMOVE, "data__count": REMOVE}  # fmt: skip
CELLS = {'"yes, both", f': "a", '"yes, both",m': "b", '"so ""so""", f': "c"}
WIDE = "town,a,b,c\na1,1,2,3\na2,0,0,0\nb1,4,5,6\nc,7,8,9\n"


def test_a_category_with_a_comma_is_quoted(tmp_path):
    spec = write_histogram_world(tmp_path, people=WIDE, **ODD, data__cells=CELLS)
    trellis.check(trellis.Spec.load(spec))
    release = trellis.run(trellis.Spec.load(spec))
    assert not problems(release.path)


def test_without_quotes_the_message_says_how(tmp_path):
    spec = write_histogram_world(tmp_path, people=WIDE, **ODD, data__cells={"yes, both, f": "a"})
    done = CliRunner().invoke(app, ["check", str(spec)])
    assert done.exit_code == 2
    assert "data.cells: 'yes, both, f' is not a cell" in done.stderr
    assert 'quotes around a category that has a comma): "yes, both", f.' in done.stderr


def test_every_cell_that_is_none_is_told(tmp_path):
    cells = {"x, f": "a", "y, f": "b", '"yes, both", f': "c", '"yes, both",f': "d"}
    with pytest.raises(SpecError) as refused:
        trellis.Spec.load(write_histogram_world(tmp_path, **ODD, data__cells=cells))
    assert len(refused.value.faults) == 3
    assert "lists '\"yes, both\", f' twice" in refused.value.faults[-1]


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 1001])
def test_names_that_nobody_can_read_are_refused(tmp_path, name):
    with pytest.raises(SpecError, match="printable characters"):
        trellis.Spec.load(write_histogram_world(tmp_path, **ODD, data__cells={name: "a"}))


def test_cells_of_counts_become_columns_and_are_named_safely():
    from worlds import SPEC, changed

    for name in ('"a"', "a;b", "x" * 201, "/"):
        with pytest.raises(SpecError, match="cannot name a cell"):
            trellis.Spec.parse(changed(SPEC, data__count=REMOVE, data__cells={name: "n"}))
