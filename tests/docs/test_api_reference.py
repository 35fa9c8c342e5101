"""Examples in docstrings run, and the API reference is what the docstrings say."""

import doctest
import inspect
import pkgutil
import runpy
from importlib import import_module

import pyarrow as pa
import pytest

import trellis as tr
from docs.test_tutorial import REPOSITORY
from trellis import api

MODULES = [f"trellis.api.{module.name}" for module in pkgutil.iter_modules(api.__path__)]
MODULES += ["trellis.samples.files"]


@pytest.fixture
def world(tmp_path, monkeypatch):
    """What the examples start from; docs/api/README.md lists it."""
    monkeypatch.chdir(tmp_path)
    names = {"pa": pa, "tr": tr}
    exec(start_of_examples(), names)
    return names


def start_of_examples() -> str:
    page = (REPOSITORY / "docs" / "api" / "README.md").read_text(encoding="utf-8")
    return page.partition("```python\n")[2].partition("```")[0]


EXAMPLES = [
    pytest.param(test, id=f"{test.name}")
    for name in MODULES
    for test in doctest.DocTestFinder(exclude_empty=True).find(import_module(name))
    if test.examples
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_runs(example, world):
    example.globs = {**example.globs, **world}
    failed = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example).failed
    assert not failed, example.name


# -- the reference --------------------------------------------------------------------------------

FOLDER = REPOSITORY / "docs" / "api"
MAKER = runpy.run_path(str(FOLDER / "make_pages.py"))
PAGES = MAKER["pages"]()


def test_pages_are_up_to_date():
    """`make docs`, or docs/api/make_pages.py, writes them."""
    written = {page.name: page.read_text(encoding="utf-8") for page in FOLDER.glob("*.md")}
    assert written == PAGES


@pytest.mark.parametrize("name", tr.__all__)
def test_every_name_has_a_page_or_a_section(name):
    if inspect.isclass(getattr(tr, name)):
        assert PAGES[f"{name}.md"].startswith(f"# tr.{name}\n")
    else:
        assert f"\n## {name}\n" in PAGES["functions.md"]
    assert f"[`tr.{name}`]" in PAGES["README.md"]


def test_names_of_pages_differ_in_more_than_case():
    assert len({name.lower() for name in PAGES}) == len(PAGES)


def public_members() -> list[tuple[str, object]]:
    found = []
    for name in MODULES:
        module = import_module(name)
        for thing in vars(module).values():
            if getattr(thing, "__module__", None) != name or thing.__name__.startswith("_"):
                continue
            found.append((f"{name}.{thing.__name__}", thing))
            for key, member in vars(thing).items() if inspect.isclass(thing) else ():
                if not key.startswith("_") and (
                    inspect.isfunction(member) or isinstance(member, property | classmethod)
                ):
                    found.append((f"{name}.{thing.__name__}.{key}", member))
    return found


@pytest.mark.parametrize(("name", "member"), public_members())
def test_everything_public_has_a_docstring(name, member):
    of_pydantic = ("model_post_init",)
    assert inspect.getdoc(member) or name.endswith(of_pydantic), name
