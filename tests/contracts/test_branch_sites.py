"""Contract: the kind of release is a type. Few places ask which kind it is.

Before the kinds were types there were 124 such places in 46 files. `verify/` asks on its own, on
purpose, and three registries list the kinds; everything else should ask the design, the spec or a
part of the kind.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import trellis
from trellis.api import specs
from trellis.model.plans.designs import DESIGNS
from trellis.spec.kinds import SPECS

SRC = Path(trellis.__file__).parent
REGISTRIES = ("spec/kinds.py", "model/plans/designs.py", "workflow/kinds.py")
APART = "verify/"
MOST = 25

NAMES = {*SPECS, "histogram"}
CLASSES = {
    made.__name__ for made in (*SPECS.values(), *DESIGNS.values(), *specs._CLASSES.values())
} | {"SizeMethod", "FlowMethod", "SizeTable", "FlowTable"}
"""Types that one kind has."""

CONSTANTS = {name.upper() for name in SPECS}
"""Such as `FLOWS`."""


def is_kind(node: ast.AST) -> bool:
    """Whether an expression is a kind by its name."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(map(is_kind, node.elts))
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value in NAMES
    return ast.unparse(node).rpartition(".")[2] in CONSTANTS or is_class(node)


def is_class(node: ast.AST) -> bool:
    """Whether it is the kind of a class, such as `FlowDesign.kind`."""
    of, _, attribute = ast.unparse(node).rpartition(".")
    return attribute == "kind" and of in CLASSES


def asks(node: ast.Compare) -> bool:
    """A constant such as `COUNTS` names other things too, so it must be compared with a kind."""
    sides = (node.left, *node.comparators)
    named = any(isinstance(side, ast.Constant | ast.Tuple) or is_class(side) for side in sides)
    return any(map(is_kind, sides)) and (named or "kind" in ast.unparse(node))


def is_site(node: ast.AST) -> bool:
    """Whether an expression asks for the kind of release."""
    if isinstance(node, ast.Compare):
        return asks(node)
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
        return any(
            isinstance(n, ast.Name | ast.Attribute) and ast.unparse(n).rpartition(".")[2] in CLASSES
            for n in ast.walk(node.args[1])
        )
    if isinstance(node, ast.Dict):
        return sum(key is not None and is_kind(key) for key in node.keys) >= 2
    if isinstance(node, ast.match_case):
        return any(is_kind(n) for n in ast.walk(node.pattern) if isinstance(n, ast.expr))
    return False


def sites(text: str) -> Iterator[tuple[int, str]]:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if is_site(node):
            line = getattr(node, "lineno", 0) or node.pattern.lineno  # type: ignore[union-attr]
            yield line, text.splitlines()[line - 1].strip()


def all_sites() -> list[str]:
    found = []
    for path in sorted(SRC.rglob("*.py")):
        name = path.relative_to(SRC).as_posix()
        if name not in REGISTRIES and not name.startswith(APART):
            found += [f"{name}:{line}: {text}" for line, text in sites(path.read_text())]
    return found


def test_few_places_ask_which_kind_a_release_is():
    found = all_sites()
    assert len(found) < MOST, f"{len(found)} places:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "if plan.kind == 'flows': pass",
        "if plan.kind in ('flows', 'group_sizes'): pass",
        "if plan.kind == FLOWS: pass",
        "if kind != model.FLOWS: pass",
        "if plan.kind == FlowDesign.kind: pass",
        "if isinstance(plan.design, FlowDesign): pass",
        "if isinstance(spec, HistogramsSpec | CountsSpec): pass",
        "if isinstance(query.table, SizeTable): pass",
        "words = {'flows': 'trips', 'counts': 'people'}[kind]",
        "if 'histogram' in content: pass",
        "match plan.kind:\n    case 'flows': pass",
    ],
)
def test_a_place_is_noticed(line):
    assert [*sites(line)]


@pytest.mark.parametrize(
    "line", ["if plan.design.by_query: pass", "flows = read(path)", "x = {'counts': 1}"]
)
def test_other_lines_are_not(line):
    assert not [*sites(line)]
