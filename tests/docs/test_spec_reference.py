"""The reference pages name every key, default, command and option, and none that is not there."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_origin

import pyarrow as pa
import pytest
import typer.main
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from trellis.cli.app import app
from trellis.errors import TrellisError
from trellis.model.plans.shares import Shares
from trellis.spec import SPECS, Spec
from trellis.spec.counts import CountsSpec
from trellis.spec.reading.older import OLDER
from trellis.spec.reading.yaml_reader import read_yaml
from trellis.storage.formats import FORMAT
from trellis.workflow.frames import Frames
from trellis.workflow.preparing.prepare import prepare

DOCS = Path(__file__).parents[2] / "docs"
SPEC_PAGE = (DOCS / "spec.md").read_text(encoding="utf-8")
COMMANDS_PAGE = (DOCS / "commands.md").read_text(encoding="utf-8")


# -- keys of the spec -----------------------------------------------------------------------------


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from models_in(part)


def keys_of(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        yield prefix + name, field
        for section in models_in(field.annotation):
            yield from keys_of(section, f"{prefix}{name}.")


def default_in_words(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    match field.default:
        case None:
            return "none"
        case BaseModel():
            return "see its keys"
        case Shares(values=None):
            return "`uniform`"
        case bool(value):
            return f"`{str(value).lower()}`"
        case ():
            return "`[]`"
        case value:
            return f"`{value}`"


EVERY, TABULAR = "Keys of every kind", "Keys of counts and histograms"
PARTS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", SPEC_PAGE, re.MULTILINE | re.DOTALL))
"""The page by its headings."""


def parts_of(kind: str) -> list[str]:
    """Where the keys of a kind are documented; what is said later is more special."""
    shared = [TABULAR] if kind in ("counts", "histograms") else []
    return [EVERY, *shared, f"`kind: {kind}`"]


def rows_of(part: str) -> dict[str, str]:
    found = re.findall(r"^\| `([\w.]+)` \|[^|]*\| ([^|]*) \|[^|]*\|$", PARTS[part], re.MULTILINE)
    assert len(dict(found)) == len(found), f"{part}: a key is listed twice"
    return dict(found)


def documented(kind: str) -> dict[str, str]:
    return {key: default for part in parts_of(kind) for key, default in rows_of(part).items()}


def keys_of_kind(kind: str) -> dict[str, FieldInfo]:
    # In a file, the kind is what tells the classes apart: there it has no default.
    return {**dict(keys_of(SPECS[kind])), "kind": Spec.model_fields["kind"]}


@pytest.mark.parametrize("kind", SPECS)
def test_every_key_of_a_kind_is_in_the_reference_and_no_other(kind):
    assert sorted(documented(kind)) == sorted(keys_of_kind(kind))


@pytest.mark.parametrize(
    ("kind", "key"), [(kind, key) for kind in SPECS for key in keys_of_kind(kind)]
)
def test_default_is_the_documented_one(kind, key):
    assert documented(kind)[key] == default_in_words(keys_of_kind(kind)[key])


def test_every_table_of_keys_belongs_to_a_kind():
    """A table under another heading would be compared with nothing."""
    checked = {part for kind in SPECS for part in parts_of(kind)}
    with_keys = {part for part, text in PARTS.items() if "| key | type | default |" in text}
    assert with_keys == checked


def test_a_missing_key_would_be_noticed():
    class Wider(CountsSpec):
        colour: str = "red"

    assert set(dict(keys_of(Wider))) - set(documented("counts")) == {"colour"}


def line_of(kind: str, key: str) -> str:
    lines = [line for part in parts_of(kind) for line in PARTS[part].splitlines()]
    return [line for line in lines if line.startswith(f"| `{key}` |")][-1]


def choices_in(annotation: Any) -> list[str]:
    """What a Literal, alone or with None, may be."""
    parts = getattr(annotation, "__args__", ())
    if get_origin(annotation) is Literal:
        return [str(part) for part in parts]
    return [choice for part in parts for choice in choices_in(part)]


CHOICES = [
    (kind, key, choice)
    for kind in SPECS
    for key, field in keys_of(SPECS[kind])
    for choice in choices_in(field.annotation)
]


@pytest.mark.parametrize(("kind", "key", "choice"), CHOICES)
def test_choices_are_listed(kind, key, choice):
    assert f"`{choice}`" in line_of(kind, key)


def test_choices_are_found():
    assert {key for _, key, _ in CHOICES} >= {
        "kind",
        "privacy.mechanism",
        "estimate.method",
        "tree",
    }
    for kind, model in SPECS.items():
        named = [c for k, key, c in CHOICES if (k, key) == (kind, "estimate.method")]
        assert sorted(named) == sorted(model.methods)


def test_older_spellings_are_listed():
    rows = re.findall(r"^\| `([^`]+)`[^|]*\| `([^`]+)` \|$", PARTS["Older spellings"], re.MULTILINE)
    assert {old.partition(":")[0] for old, _ in rows} == {"kind", *OLDER}


# -- examples in the reference --------------------------------------------------------------------

LEVELS = ["state", "county", "tract", "block_group", "geoid"]
CODES = ["100010401001000", "100010401001001", "100010401002000", "100030001001000"]
PATHS = [[code[:n] for n in (2, 5, 11, 12, 15)] for code in CODES]
AREAS = pa.table(dict(zip(LEVELS, zip(*PATHS, strict=True), strict=True)))
PAIRS = {path[i]: path[i - 1] if i else None for path in PATHS for i in range(len(path))}
PARENTS = pa.table({"area": list(PAIRS), "part_of": list(PAIRS.values())})

HRC = "".join(f"{'@' * (i - 1)}{code}\n" for code, i in (
    (path[i], i) for n, path in enumerate(PATHS) for i in range(1, 5)
    if n == 0 or path[i] != PATHS[n - 1][i]))  # fmt: skip

EXAMPLES = re.findall(r"^```(yaml(?: refused)?)\n(.*?)^```$", SPEC_PAGE, re.MULTILINE | re.DOTALL)


FOR_ANY_KIND = ("release", "dataset", "hierarchy", "privacy", "output", "ledger")

SIZES = next(text for kind, text in EXAMPLES if text.startswith("kind: group_sizes"))
SIZES_PAGE = (DOCS / "group-sizes.md").read_text(encoding="utf-8")
SIZES_EXAMPLES = re.findall(r"^```yaml\n(.*?)^```$", SIZES_PAGE, re.MULTILINE | re.DOTALL)


def plan_of(*texts: str, folder: Path) -> None:
    """Plan the first example of the page with the sections of `texts` in place of its own.

    Under another kind, what the first example says of its own kind is left out.
    """
    spec: dict[str, Any] = {}
    for part in (EXAMPLES[0][1], *texts):
        (folder / "part.yaml").write_text(part, encoding="utf-8")
        sections = read_yaml(folder / "part.yaml")
        if sections.get("kind", spec.get("kind")) != spec.get("kind"):
            spec = {key: spec[key] for key in FOR_ANY_KIND if key in spec}
        spec |= sections
    (folder / "places.csv").write_text(f"block,place\n{CODES[0]},P\n", encoding="utf-8")
    parsed = Spec.parse(spec, folder)
    if parsed.hierarchy.hrc is not None:
        (folder / "areas.hrc").write_text(HRC, encoding="utf-8")
        prepare(parsed)
        return
    areas = AREAS if parsed.hierarchy.parent_child is None else PARENTS
    others = AREAS if getattr(parsed, "destinations", None) is not None else None
    prepare(parsed, Frames(hierarchy=areas, destinations=others))


@pytest.mark.parametrize("text", [text for kind, text in EXAMPLES if kind == "yaml"])
def test_example_is_accepted(text, tmp_path):
    plan_of(text, folder=tmp_path)


@pytest.mark.parametrize("text", SIZES_EXAMPLES)
def test_example_of_group_sizes_is_accepted(text, tmp_path):
    plan_of(SIZES, text, folder=tmp_path)


@pytest.mark.parametrize("text", [text for kind, text in EXAMPLES if kind == "yaml refused"])
def test_example_is_refused(text, tmp_path):
    with pytest.raises(TrellisError):
        plan_of(text, folder=tmp_path)


# -- commands -------------------------------------------------------------------------------------

COMMANDS = typer.main.get_command(app).commands
SECTIONS = dict(
    re.findall(r"^## `trellis (\w+)`\n(.*?)(?=^## |\Z)", COMMANDS_PAGE, re.MULTILINE | re.DOTALL)
)


def test_every_command_has_a_section_and_no_other():
    assert list(SECTIONS) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_in_its_section_and_no_other(name):
    known = {option for p in COMMANDS[name].params for option in p.opts if option.startswith("-")}
    section = SECTIONS.get(name, "")
    first_cells = re.findall(r"^\| ([^|]*) \|", section, re.MULTILINE)
    named = {option for cell in first_cells for option in re.findall(r"`(-[\w-]+)", cell)}
    assert named == known - {"--help"}
    for argument in (p for p in COMMANDS[name].params if not p.opts[0].startswith("-")):
        assert f"`{argument.metavar}`" in section


def test_options_of_the_program_are_named():
    for param in typer.main.get_command(app).params:
        for option in param.opts:
            assert f"`{option}`" in COMMANDS_PAGE


def test_exit_codes_are_the_documented_ones():
    from trellis.cli import terminal

    codes = {terminal.BAD_INPUT, terminal.BROKEN_PROMISE, terminal.INTERRUPTED, 0}
    listed = re.findall(r"^\| `(\d+)` \|", COMMANDS_PAGE, re.MULTILINE)
    assert {int(code) for code in listed} == codes


# -- the run folder -------------------------------------------------------------------------------


def test_format_is_the_documented_one():
    page = (DOCS / "run-folder.md").read_text(encoding="utf-8")
    assert set(re.findall(r"The form of the file, (\d+)\.", page)) == {str(FORMAT)}
    assert f"a key `format`, {FORMAT} at present" in page
