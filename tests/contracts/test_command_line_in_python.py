"""Everything the command line can do, Python can do.

The table of docs/python.md has, for every option of every command, a call. Here it is compared with
the commands as they are, and each call with the signatures of what it names.
"""

import ast
import inspect
import re

import pytest
import typer.main

import trellis as tr
from docs.test_tutorial import REPOSITORY
from trellis.api.pictures import Picture, Pictures
from trellis.api.releases import Verification
from trellis.api.statements import PrivacyStatement
from trellis.cli.app import app
from trellis.privacy import DiscreteGaussian, DiscreteLaplace
from trellis.privacy.guarantee import Guarantee
from trellis.privacy.ledger import Account
from trellis.workflow.evaluation.evaluate import Evaluation
from trellis.workflow.outlook.plan_report import PlanReport

PYTHON_PAGE = (REPOSITORY / "docs" / "python.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (`.*`.*) \| (`.*) \|$", PYTHON_PAGE, re.MULTILINE)
HELD = {"plan": tr.Plan, "spec": tr.Spec, "ledger": tr.Ledger}
COMMANDS = typer.main.get_command(app).commands
OF_SHELLS = {"--install-completion", "--show-completion"}
"""They change the settings of a shell, which Python does not have."""


# -- every option is in the table -----------------------------------------------------------------


def options() -> list[tuple[str, str]]:
    """Commands, none for the program itself, and their options."""
    program = typer.main.get_command(app)
    found = [("", option) for option in names_of(program) if option not in OF_SHELLS]
    return found + [(name, o) for name, command in COMMANDS.items() for o in names_of(command)]


def names_of(command) -> list[str]:
    return [o for p in command.params for o in (*p.opts, *p.secondary_opts) if o.startswith("--")]


def is_in_table(command: str, option: str, rows=ROWS) -> bool:
    """In a row of this command, or in one for several commands, which names none."""
    word = re.compile(rf"{option}(?![\w-])")
    mine = re.compile(rf"`trellis {command}\b" if command else "`trellis --")
    return any(
        word.search(cell) and (mine.search(cell) or "trellis" not in cell) for cell, _ in rows
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_way_in_python(command):
    assert any(f"`trellis {command}" in cell for cell, _ in ROWS)


@pytest.mark.parametrize(("command", "option"), options())
def test_every_option_has_its_way_in_python(command, option):
    assert is_in_table(command, option)


def test_mutation_a_row_that_is_gone_is_missed():
    for cell, _ in ROWS:
        fewer = [row for row in ROWS if row[0] != cell]
        own = [o for o in options() if not is_in_table(*o, fewer)]
        assert own or "--" not in cell, cell
    assert not is_in_table("plan", "--svg")
    assert not is_in_table("ledger", "--set")


def test_the_table_has_no_option_that_is_gone():
    known = {option for _, option in options()}
    named = {o for cell, _ in ROWS for o in re.findall(r"--[a-z][a-z-]*", cell)}
    assert named == known


# -- every call can be made -----------------------------------------------------------------------

CLASSES = {
    found.__name__: found
    for found in (
        Account, DiscreteGaussian, DiscreteLaplace, Evaluation, Guarantee, Picture, Pictures,
        PlanReport, PrivacyStatement, Verification, tr.Accountant, tr.Plan, tr.Release, tr.Run,
        tr.Spec, tr.Table,
    )
}  # fmt: skip
PYTHON = [span for _, cell in ROWS for span in re.findall(r"`([^`]*)`", cell) if "." in span]


def parsed(span: str) -> ast.AST:
    return ast.parse(f"{span}\n" if ": " not in span or "{" in span else span.replace(": ", ":\n "))


def check_calls(node: ast.AST) -> int:
    """Bind every call to the signature of what it calls; how many there are."""
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    for call in calls:
        called, is_method = function_of(call.func)
        given = [None] * (len(call.args) + is_method)
        inspect.signature(called).bind(*given, **{str(k.arg): None for k in call.keywords})
    return len(calls)


def function_of(node: ast.expr):
    """What an expression names, and whether it is a method of an object."""
    if isinstance(node, ast.Name):
        return CLASSES[node.id], False
    assert isinstance(node, ast.Attribute)
    if isinstance(node.value, ast.Name) and node.value.id == "tr":
        return getattr(tr, node.attr), False
    member = inspect.getattr_static(class_of(node.value), node.attr)
    return member, inspect.isfunction(member)


def class_of(node: ast.expr) -> type:
    """The class of what an expression gives, by the annotation of what makes it."""
    if isinstance(node, ast.Name):
        return HELD[node.id]
    made = function_of(node.func if isinstance(node, ast.Call) else node)[0]
    if inspect.isclass(made):
        return made
    made = made.fget if isinstance(made, property) else made
    answer = made.__annotations__["return"]
    return tr.Accountant if answer == "Self" else CLASSES[answer]


def test_what_the_table_names_is_there():
    calls = re.sub(r'"[^"]*"', '""', " ".join(python for _, python in ROWS))
    used = re.findall(r"\b(tr|plan|spec|ledger)\.(\w+)", calls)
    assert len(used) > 30
    for held, name in used:
        assert hasattr(HELD.get(held, tr), name), f"{held}.{name}"


@pytest.mark.parametrize("span", PYTHON)
def test_every_call_of_the_table_can_be_made(span):
    calls = check_calls(parsed(span))
    assert calls or "(" not in span


@pytest.mark.parametrize("span", [
    "plan.pictures(folder='x')",
    "plan.picture().save()",
    "plan.areas_csv('x')",
    "spec.run(newer_edition=True)",
    "tr.account('x', 1, 2)",
    "tr.load('x').plan().account(deltas=1)",
    "ledger.limit('x', 'person', sigma=4)",
])  # fmt: skip
def test_mutation_a_call_that_cannot_be_made_is_found(span):
    with pytest.raises((TypeError, AttributeError)):
        check_calls(parsed(span))
