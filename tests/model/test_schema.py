import pytest

from trellis.errors import StructureError
from trellis.model import Schema


def test_cells_are_the_product_of_categories_last_attribute_fastest():
    schema = Schema({"sex": ["f", "m"], "age": ["young", "old", "unknown"]})
    assert schema.shape == (2, 3)
    assert schema.n_cells == 6
    assert schema.cells() == [
        ("f", "young"), ("f", "old"), ("f", "unknown"),
        ("m", "young"), ("m", "old"), ("m", "unknown"),
    ]  # fmt: skip


def test_equal_declarations_are_equal_and_frozen():
    schema = Schema({"cell": ["a", "b"]})
    assert schema == Schema({"cell": ("a", "b")})
    assert schema != Schema({"cell": ["b", "a"]})
    with pytest.raises(AttributeError):
        schema.names = ("other",)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({}, "at least one attribute"),
        ({"cell": []}, "'cell' needs distinct categories"),
        ({"cell": ["a"], "sex": ["f", "f"]}, "'sex' needs distinct categories"),
    ],
)
def test_what_is_no_schema_is_refused(attributes, message):
    with pytest.raises(StructureError, match=message):
        Schema(attributes)
