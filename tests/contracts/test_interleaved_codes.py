"""No release sorts codes in the way that ends in a segmentation fault."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from drivers import printed_by

import trellis

SOURCES = Path(trellis.__file__).parent
SORTING = SOURCES / "model" / "trees" / "codes.py"
SORTS = {"sort", "argsort", "lexsort", "unique", "unique_all", "unique_counts", "unique_inverse",
         "unique_values", "isin", "intersect1d", "setdiff1d", "setxor1d", "union1d",
         "searchsorted", "partition", "argpartition"}  # fmt: skip
"""What may sort with NumPy's default."""


def test_codes_in_any_order_do_not_crash():
    done = printed_by("interleaved_codes")
    assert done == ["tree", "counts", "areas", "branch", "histograms", "group_sizes", "flows"]


def names_in(node: ast.AST) -> Iterator[str]:
    """Names of arrays; a list becomes text of fixed width, and a size is a number."""
    if isinstance(node, ast.ListComp) or (isinstance(node, ast.Attribute) and node.attr == "size"):
        return
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    for part in ast.iter_child_nodes(node):
        yield from names_in(part)


def sorts_of_codes(source: str) -> list[int]:
    """Lines on which NumPy sorts something called codes, texts or entities."""
    return [
        call.lineno
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in SORTS
        and ast.unparse(call.func.value) != "pc"  # Arrow's own
        and any(word in name for name in names_in(call) for word in ("codes", "texts", "entities"))
    ]


def test_codes_are_sorted_in_one_module_alone():
    files = [path for path in SOURCES.rglob("*.py") if path != SORTING]
    found = {str(path): lines for path in files if (lines := sorts_of_codes(path.read_text()))}
    assert len(files) > 200
    assert found == {}


@pytest.mark.parametrize(
    "line",
    ["np.sort(codes)", "np.unique(tree.codes(1))", "np.argsort(texts)", "node_codes[0].sort()",
     "np.isin(mine, tree.codes(level)[shown])"],
)  # fmt: skip
def test_a_sort_of_codes_is_noticed(line):
    assert sorts_of_codes(line) == [1]
    assert sorts_of_codes("np.sort(numbers)") == []
