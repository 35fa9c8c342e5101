"""The sentences of a release are constants: nothing in them can decide anything."""

import ast
from pathlib import Path

import pytest

import trellis.wording

FILES = sorted(Path(trellis.wording.__file__).parent.rglob("*.py"))


def is_constant(node: ast.expr) -> bool:
    """Text, numbers, and lists of them; templates are plain text, never f-strings."""
    match node:
        case ast.Constant():
            return True
        case ast.Tuple(elts=parts):
            return all(map(is_constant, parts))
        case ast.Dict(keys=keys, values=values):
            return all(key is not None and is_constant(key) for key in keys) and all(
                map(is_constant, values)
            )
    return False


def is_allowed(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True  # a docstring
        case ast.ImportFrom(module="__future__"):
            return True
        case ast.Assign(targets=targets, value=value):
            names = [
                name for t in targets for name in (t.elts if isinstance(t, ast.Tuple) else [t])
            ]
            return all(isinstance(name, ast.Name) for name in names) and is_constant(value)
    return False


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_wording_has_no_logic(path):
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        assert is_allowed(node), f"{path.name}, line {node.lineno}"


@pytest.mark.parametrize(
    "code",
    ["import os", "A = f'{1}'", "A = 1 + 1", "A = len('x')", "def f(): pass", "A = [x for x in ()]",
     "A = {**{}}", "if True: A = 1", "A: str = 'x'", "A.b = 1"],
)  # fmt: skip
def test_logic_is_noticed(code):
    assert not all(map(is_allowed, ast.parse(code).body))
