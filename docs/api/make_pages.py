"""Writes the API reference beside this file, from signatures and docstrings; `make docs` runs it.

A page for each class of `import trellis as tr`, one for all functions, and a list of both. Names of
pages differ in more than case: `Plan` is a page, `plan` a section of functions.md.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import trellis as tr
from trellis.api import pictures, releases, specs, statements
from trellis.spec import SPECS

HERE = Path(__file__).parent

START = """\
from pathlib import Path

import pyarrow as pa

import trellis as tr

areas = pa.table({"region": ["north", "north", "south"], "town": ["ash", "elm", "oak"]})
people = pa.table({"town": ["ash"] * 40 + ["elm"] * 110 + ["oak"] * 180})
Path("people.csv").write_text("town\\n" + "\\n".join(people["town"].to_pylist()) + "\\n")
spec = tr.Counts(
    name="towns",
    dataset="people-2026",
    records=tr.Records(people, area="town"),
    hierarchy=tr.Hierarchy.from_columns(areas, ["region", "town"], root=("country", "all")),
    protects=tr.Unit("person", neighbours="add_remove", max_contribution=1),
    noise=tr.Gaussian(rho="1/2"),
)
"""
"""What the examples start from."""

GROUPS = {
    "Specs": ("Spec", "Counts", "Histograms", "GroupSizes", "Flows"),
    "Parts of a spec": (
        "Records", "Hierarchy", "Register", "Areas", "Unit", "Gaussian", "Laplace", "Optimal",
    ),
    "From plan to tables": ("Plan", "Run", "Release", "Table"),
    "Privacy": ("Ledger", "Accountant"),
}  # fmt: skip

INSTEAD = {"release": "name", "data": "records", "group_register": "register",
           "privacy": "protects, noise, shares"}  # fmt: skip
"""What Python also takes for a key."""

WITH_PAGES_OF_OTHERS = {
    "Plan": (pictures.Pictures, pictures.Picture),
    "Accountant": (statements.PrivacyStatement,),
    "Release": (
        releases.HistogramsRelease,
        releases.GroupSizesRelease,
        releases.FlowsRelease,
        releases.Verification,
    ),
}
"""Classes that a user meets without naming them."""

MACHINERY = {
    "Ledger": {
        "id", "is_named", "key", "known_key", "records_key", "known_records_key", "edition",
        "check", "charge", "enter", "claim", "settle", "set_limit", "declare", "entry", "withdraw",
    },
    "Plan": {"of", "checked", "model"},
    "Run": {"measured", "completed"},
    "Verification": {"of"},
    "PrivacyStatement": {"of", "at", "rows", "svg"},
}  # fmt: skip
"""What stages call on each other's behalf, and a user does not."""

OF_SPECS = {
    "model_copy", "model_validate", "model_construct", "model_post_init", "copy", "of", "of_kind",
    "resolve", "comes_with_records", "needs_register", "hierarchies", "columns", "parse",
}  # fmt: skip

MADE_BY_OTHERS = ("Plan", "Picture", "Pictures", "PrivacyStatement", "Table", "Verification")
"""Classes that a user does not call."""


def pages() -> dict[str, str]:
    """All pages by name."""
    return {
        "README.md": index(),
        "functions.md": functions_page(),
        **{f"{name}.md": class_page(name) for names in GROUPS.values() for name in names},
    }


def function_names() -> list[str]:
    return [name for name in tr.__all__ if not inspect.isclass(getattr(tr, name))]


# -- pages ----------------------------------------------------------------------------------------


def index() -> str:
    parts = ["# Python reference", _intro()]
    for title, names in GROUPS.items():
        rows = "\n".join(f"| [`tr.{n}`]({n}.md) | {_summary(getattr(tr, n))} |" for n in names)
        parts.append(f"## {title}\n\n| class | what it is |\n|---|---|\n{rows}")
    rows = "\n".join(
        f"| [`tr.{n}`](functions.md#{n}) | {_summary(getattr(tr, n))} |" for n in function_names()
    )
    parts.append(f"## Functions\n\n| function | what it does |\n|---|---|\n{rows}")
    return "\n\n".join(parts) + "\n"


def _intro() -> str:
    return f"""\
Everything here comes from `import trellis as tr`. Start with [Python](../python.md), which has a
complete example. `docs/api/make_pages.py` writes these pages from signatures and docstrings.

The examples run in the tests. They start from

```python
{START}```"""


def functions_page() -> str:
    parts = ["# Functions", "All of them come from `import trellis as tr`."]
    for name in function_names():
        function = getattr(tr, name)
        parts += [f"## {name}", _code(f"tr.{name}{_signature(function)}"), _text(function)]
    return "\n\n".join(parts) + "\n"


def class_page(name: str) -> str:
    found = getattr(tr, name)
    parts = [f"# tr.{name}", *_class(found, f"tr.{name}")]
    for other in WITH_PAGES_OF_OTHERS.get(name, ()):
        parts += [f"## {other.__name__}", *_class(other, other.__name__, without=found)]
    return "\n\n".join(parts) + "\n"


def _class(found: type, called: str, without: type | None = None) -> Iterator[str]:
    kind = next((k for k, model in SPECS.items() if issubclass(found, model)), None)
    if not _is_spec(found) and without is None and found.__name__ not in MADE_BY_OTHERS:
        yield _code(f"{called}{_signature(found)}")
    yield _text(found)
    if kind is not None:
        yield _keys(found, kind)
        yield "Methods are those of [`tr.Spec`](Spec.md)" + (", and:" if _own(found) else ".")
    members = _own(found) if kind is not None else _members(found, without)
    for name, member in members.items():
        yield f"### {name}"
        if not isinstance(member, property):
            yield _code(f"{name}{_signature(member)}")
        yield _text(member)


def _is_spec(found: type) -> bool:
    return issubclass(found, specs.Spec)


def _own(found: type) -> dict[str, Any]:
    """Members of a kind that other kinds do not have."""
    return _members(found, specs.Spec)


def _keys(found: Any, kind: str) -> str:
    rows = []
    for name, field in found.model_fields.items():
        if name == "kind":
            continue
        also = f"`{INSTEAD[name]}`" if name in INSTEAD else ""
        rows.append(f"| `{name}` | {also} | {'required' if field.is_required() else 'optional'} |")
    table = "| key | or in Python | |\n|---|---|---|\n" + "\n".join(rows)
    return f"[The spec](../spec.md#kind-{kind}) says what each key means.\n\n{table}"


# -- members --------------------------------------------------------------------------------------


def _members(found: type, without: type | None = None) -> dict[str, Any]:
    """Public methods and properties, in the order of the source, those of bases last."""
    hidden = MACHINERY.get(found.__name__, set()) | (OF_SPECS if _is_spec(found) else set())
    inherited = {} if without is None else _members(without)
    members: dict[str, Any] = {}
    for base in found.__mro__:
        if not base.__module__.startswith("trellis."):
            continue
        for name, value in vars(base).items():
            if name.startswith("_") or name in hidden or _is_known(inherited, name, value):
                continue
            if isinstance(value, property | classmethod | staticmethod) or inspect.isfunction(
                value
            ):
                members.setdefault(name, value)
    return {name: member for name, member in members.items() if _doc(member)}


def _is_known(inherited: dict[str, Any], name: str, value: Any) -> bool:
    """Whether a page has it already; what a kind of release redefines is shown again."""
    return name in inherited and (inherited[name] is value or isinstance(value, property))


def _signature(called: Any) -> str:
    """As written in the source: annotations are text there."""
    if isinstance(called, classmethod | staticmethod):
        called, skipped = called.__func__, 1
    else:
        skipped = int(inspect.isfunction(called) and "self" in inspect.signature(called).parameters)
    signature = inspect.signature(called)
    parameters = [
        p.replace(annotation=_Bare.of(p.annotation)) for p in signature.parameters.values()
    ]
    answer = signature.return_annotation if inspect.isfunction(called) else inspect.Signature.empty
    text = str(
        signature.replace(parameters=parameters[skipped:], return_annotation=_Bare.of(answer))
    )
    return text.replace("SpecOfAnyKind", "Spec").replace("ModelPlan", "Plan")


class _Bare(str):
    """Text that is shown without quotes."""

    __slots__ = ()

    __repr__ = str.__str__

    @classmethod
    def of(cls, annotation: Any) -> Any:
        return cls(annotation) if isinstance(annotation, str) else annotation


def _code(signature: str) -> str:
    """A signature on one line if it fits, else a line for each argument."""
    if len(signature) > 92:
        name, _, rest = signature.partition("(")
        inside, _, answer = rest.rpartition(")")
        arguments = "".join(f"    {part},\n" for part in _arguments(inside))
        signature = f"{name}(\n{arguments}){answer}"
    return f"```python\n{signature}\n```"


def _arguments(text: str) -> list[str]:
    """Split at commas outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


# -- docstrings -----------------------------------------------------------------------------------


def _summary(found: Any) -> str:
    return " ".join(_doc(found).partition("\n\n")[0].split()).replace("|", "\\|")


def _doc(found: Any) -> str:
    wrapped: Callable[..., Any] = getattr(found, "__func__", found)
    return inspect.cleandoc(inspect.getdoc(wrapped) or "")


def _text(found: Any) -> str:
    """A docstring as Markdown: examples and indented lines become blocks of code."""
    blocks = re.split(r"\n{2,}", _doc(found))
    return "\n\n".join(_block(block) for block in blocks if block)


def _block(block: str) -> str:
    if block.startswith(">>>"):
        return f"```pycon\n{block}\n```"
    if all(line.startswith("    ") for line in block.splitlines()):
        return f"```python\n{inspect.cleandoc(block)}\n```"
    return block


if __name__ == "__main__":
    for page in HERE.glob("*.md"):
        if page.name not in pages():
            page.unlink()
    for page_name, content in pages().items():
        (HERE / page_name).write_text(content, encoding="utf-8")
