"""Rules over categories: what they describe, and what they refuse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from histogram_release_worlds import SCHEMA
from trellis.errors import StructureError
from trellis.model import Schema
from trellis.model.tables.rules import edit_rule_cells, impossible_cells, rule_cells

CELLS = [(int(age), sex) for age, sex in SCHEMA.cells()]


def cells(rule):
    return rule_cells(SCHEMA, ("age",), rule).tolist()


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ("age < 2", lambda age, sex: age < 2),
        ("age <= 2 and sex = f", lambda age, sex: age <= 2 and sex == "f"),
        ("age >= 17", lambda age, sex: False),  # a whole number need not be a category
        ("age < 17", lambda age, sex: True),
        ("sex != f or age = 0", lambda age, sex: sex != "f" or age == 0),
        ("not (age > 0 and sex = m)", lambda age, sex: not (age > 0 and sex == "m")),
        ("age in [0, 3] and sex == 'm'", lambda age, sex: age in (0, 3) and sex == "m"),
        ("adult = yes", lambda age, sex: age > 0),
        ("not adult = yes and not not sex=f", lambda age, sex: age == 0 and sex == "f"),
        ("age=0 or age=1 and sex=m", lambda age, sex: age == 0 or (age == 1 and sex == "m")),
    ],
)
def test_rule_describes_cells(rule, holds):
    assert cells(rule) == [holds(age, sex) for age, sex in CELLS]


ATOMS = st.sampled_from(["age < 2", "age = 3", "sex = f", "adult = no", "age in [1, 2]"])
RULES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        inner.map(lambda a: f"not ({a})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda t: f"({t[0]}) {t[1]} ({t[2]})"
        ),
    ),
    max_leaves=8,
)


@given(RULES)
def test_nested_rules_mean_what_python_says(rule):
    """Python has the same words; here only texts made above are handed to it."""
    said = rule.replace("age = 3", "age == 3").replace("sex = f", "sex == 'f'")
    said = said.replace("adult = no", "age == 0")
    code = compile(said, "rule", "eval")
    expected = [bool(eval(code, {"age": age, "sex": sex})) for age, sex in CELLS]
    assert cells(rule) == expected


@pytest.mark.parametrize(
    "rule",
    ["", "  ", "age", "age <", "age < 2 and", "age < 2 sex = f", "height = 2", "age = 9",
     "sex < m", "adult < yes", "age in 2", "age in [", "age in []", "(age = 1", "age = 1)",
     "age = and", "and = 1", "age ~ 1", "age = '1", "age < f", "__import__('os')",
     "not " * 60 + "age = 1", "(" * 60 + "age = 1" + ")" * 60, "age < 1.5"],
)  # fmt: skip
def test_bad_rule_is_refused(rule):
    with pytest.raises(StructureError):
        cells(rule)


def test_quotes_protect_words_and_signs():
    schema = Schema({"kind of": ["and", "a < b", "x,y"]})
    assert rule_cells(schema, (), "'kind of' = 'and'").tolist() == [True, False, False]
    assert rule_cells(schema, (), '"kind of" in ["a < b", "x,y"]').tolist() == [False, True, True]


def test_order_of_categories_is_that_of_the_declaration():
    schema = Schema({"size": ["small", "middle", "large"]})
    assert rule_cells(schema, ("size",), "size > small").tolist() == [False, True, True]
    with pytest.raises(StructureError, match="no order"):
        rule_cells(schema, (), "size > small")


def test_several_rules_add_up_and_edit_rules_have_two_sides():
    both = impossible_cells(SCHEMA, ("age",), ["age = 0", "sex = f"])
    assert both.tolist() == [age == 0 or sex == "f" for age, sex in CELLS]
    assert not impossible_cells(SCHEMA, (), []).any()
    given_, needed = edit_rule_cells(SCHEMA, ("age",), "age < 1 requires age >= 1")
    np.testing.assert_array_equal(given_, ~needed)
    with pytest.raises(StructureError, match="requires"):
        edit_rule_cells(SCHEMA, ("age",), "age < 1")
