"""The spec: every key, nothing guessed, and errors that say which key and what is allowed."""

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from trellis import Spec
from trellis.errors import SpecError
from trellis.model.plans.shares import Shares
from trellis.privacy.budget import Budget
from trellis.privacy.neighbours import Neighbours
from trellis.spec.reading import yaml_reader
from trellis.spec.sections.values import to_fraction
from worlds import REMOVE, SPEC, changed


def parse(**changes) -> Spec:
    return Spec.parse(changed(SPEC, **changes))


def refusal(**changes) -> str:
    with pytest.raises(SpecError) as refused:
        parse(**changes)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def load(folder: Path, text: str | bytes) -> Spec:
    path = folder / "spec.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Spec.load(path)


# -- keys -----------------------------------------------------------------------------------------


def test_the_design_s_example_is_read_as_written(tmp_path):
    spec = load(tmp_path, """
release: delaware-2010
kind: counts
dataset: census-2010-de
data:
  source: census_blocks_2010_de.parquet
  area: geoid
  cells: {total: pop}
hierarchy:
  source: census_blocks_2010_de.parquet
  public: true
  code: {column: geoid, width: 15}
  prefixes: {state: 2, county: 5, tract: 11, block_group: 12, block: 15}
privacy:
  unit: person
  neighbours: replace
  max_contribution: 1
  mechanism: discrete_gaussian
  budget: {rho: 1}
  shares: {county: 1/15, tract: 2/15, block_group: 4/15, block: 8/15}
unprotected:
  totals: [state]
estimate: {method: gls_topdown}
output: {confidence: 9/10, csv: true}
ledger: {path: ledger.sqlite, limit: {rho: 4}}
""")  # fmt: skip
    assert spec.data.cell_forms == {"total": {"pop": 1}}
    assert list(spec.hierarchy.prefixes.items())[-1] == ("block", 15)
    assert spec.hierarchy.code_width == 15
    assert spec.privacy.neighbours is Neighbours.REPLACE
    assert spec.privacy.budget.value() == Budget(rho=Fraction(1))
    assert spec.privacy.shares.values["block_group"] == Fraction(4, 15)
    assert spec.unprotected.totals == ("state",)
    assert spec.output.confidence == Fraction(9, 10)
    assert spec.output.csv is True
    assert spec.ledger.limit.value() == Budget(rho=Fraction(4))


def test_what_may_be_left_out_has_a_default():
    spec = parse()
    assert spec.privacy.shares == Shares()
    assert spec.unprotected.totals == ()
    assert spec.estimate.method == "gls_topdown"
    assert spec.output.confidence == Fraction(9, 10)
    assert spec.output.csv is None
    assert spec.ledger.path == "ledger.sqlite"
    assert spec.ledger.limit is None


@pytest.mark.parametrize("key", ["unit", "neighbours", "max_contribution", "mechanism", "budget"])
def test_five_keys_of_privacy_have_no_default(key):
    message = refusal(**{f"privacy__{key}": REMOVE})
    assert f"Missing key 'privacy.{key}'" in message
    assert "it has no default" in message


@pytest.mark.parametrize("key", ["release", "kind", "dataset", "data", "hierarchy", "privacy"])
def test_other_keys_are_needed_too(key):
    assert f"Missing key '{key}'" in refusal(**{key: REMOVE})
    assert "Missing key 'data.area'" in refusal(data__area=REMOVE)


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("relese", "did you mean 'release'"),
        ("privacy__neighbors", "did you mean 'neighbours'"),
        ("privacy__budget__rh", "did you mean 'rho'"),
        ("data__arae", "did you mean 'area'"),
        ("hierarchy__prefix", "did you mean 'prefixes'"),
        ("unprotected__total", "did you mean 'totals'"),
        ("output__conf", "did you mean 'confidence'"),
        ("ledger__limt", "did you mean 'limit'"),
        ("ledger__limit__rhoo", "did you mean 'rho'"),
        ("estimate__methods", "did you mean 'method'"),
        ("zzz", "allowed here: release, kind, dataset, data, hierarchy, privacy"),
        ("estimate__zzz", "allowed here: method"),
    ],
)
def test_unknown_keys_are_refused_with_the_nearest_one(key, near):
    message = refusal(**{key: "x"})
    assert f"Unknown key '{key.replace('__', '.')}'" in message
    assert near in message


def test_an_unknown_key_is_reported_before_what_it_caused():
    message = refusal(privacy__neighbours=REMOVE, privacy__neighbors="replace")
    assert (
        message
        == "Unknown key 'privacy.neighbors'; did you mean 'neighbours'? (1 more to put right)"
    )


BAD_VALUES = {
    "kind": ("orbits", "kind: .*'counts'"),
    "release": ("../../etc", "release: use letters, digits"),
    "dataset": ("a" * 81, "dataset: use letters, digits"),
    "privacy__unit": ("a/b", r"privacy\.unit: use letters"),
    "privacy__neighbours": ("swap", "privacy.neighbours: .*'add_remove' or 'replace'"),
    "privacy__mechanism": ("gaussian", "'discrete_gaussian' or 'discrete_laplace'"),
    "estimate__method": ("magic", "'gls_topdown', 'topdown', 'gls' or 'bottomup'"),
    "privacy__budget": (5, "privacy.budget"),
    "unprotected__totals": ("state", "unprotected.totals"),
    "output__csv": ("perhaps", "output.csv"),
    "data": ("people.csv", "data"),
    "hierarchy__public": ("maybe", "hierarchy.public"),
}


@pytest.mark.parametrize("key", BAD_VALUES)
def test_values_that_are_not_allowed_are_refused(key):
    value, message = BAD_VALUES[key]
    with pytest.raises(SpecError, match=message):
        parse(**{key: value})


@pytest.mark.parametrize("value", [0, -1, 1.5, "2", True, 10**7, None])
def test_max_contribution_is_a_whole_number_from_one_up(value):
    assert "privacy.max_contribution" in refusal(privacy__max_contribution=value)


@pytest.mark.parametrize("name", ["a", "Größe 北京", "x.y-z_1", "a" * 80])
def test_names_are_safe_in_file_names(name):
    assert parse(release=name).release == name


@pytest.mark.parametrize("name", ["", ".hidden", "-x", "a/b", "a\\b", "a\nb", "a:b", "a*", "a'b"])
def test_names_that_are_not_safe_are_refused(name):
    assert "use letters, digits" in refusal(release=name)
    assert "use letters, digits" in refusal(hierarchy__columns=["nation", name or "?"])


# -- exact numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (1, Fraction(1)), ("0.1", Fraction(1, 10)), (0.1, Fraction(1, 10)),
        ("1e-10", Fraction(1, 10**10)), (1e-10, Fraction(1, 10**10)), ("2/7", Fraction(2, 7)),
        (" 3 ", Fraction(3)), ("1.50", Fraction(3, 2)), (Fraction(1, 3), Fraction(1, 3)),
    ],
)  # fmt: skip
def test_numbers_are_taken_exactly_as_written(written, meant):
    assert to_fraction(written) == meant


@given(st.fractions())
def test_fractions_survive_being_written(value):
    assert len(str(value)) > 60 or to_fraction(str(value)) == value


@pytest.mark.parametrize(
    "value",
    ["", "much", "1/0", "1e101", "1e-101", "1e999999999", "nan", "inf", "1" * 61, float("nan"),
     float("inf"), "1e", "1//2", "0x10"],
)  # fmt: skip
def test_text_that_is_no_number_is_refused(value):
    with pytest.raises(ValueError, match="is not a number such as"):
        to_fraction(value)


@pytest.mark.parametrize("value", [True, None, [1], {}, 1j])
def test_what_is_neither_number_nor_text_is_refused(value):
    with pytest.raises(ValueError, match=r"a number such as .* is needed"):
        to_fraction(value)


def test_yaml_does_not_round_decimals(tmp_path):
    text = yaml.safe_dump(SPEC).replace("rho: 1", "rho: 0.1")
    assert load(tmp_path, text).privacy.budget.rho == Fraction(1, 10)
    text = yaml.safe_dump(SPEC).replace("rho: 1", "rho: 0.1000000000000000000000000001")
    assert load(tmp_path, text).privacy.budget.rho > Fraction(1, 10)


@pytest.mark.parametrize("value", ["1/3", 0.5, "0.999999999"])
def test_confidence_is_exact(value):
    assert parse(output__confidence=value).output.confidence == Fraction(str(value))


@pytest.mark.parametrize("value", [0, 1, 90, -1, "0.99999999999999999999"])
def test_confidence_leaves_room_for_an_interval(value):
    assert "confidence must lie above 0" in refusal(output__confidence=value)


# -- budgets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "budget", "message"),
    [
        ("discrete_gaussian", {"epsilon": 1}, "discrete_gaussian takes a budget of rho"),
        ("discrete_laplace", {"rho": 1}, "discrete_laplace takes a budget of epsilon alone"),
        ("discrete_laplace", {"epsilon": 1, "delta": "1e-6"}, "epsilon alone"),
        ("discrete_gaussian", {"rho": 1, "epsilon": 1}, "A budget is either rho"),
        ("discrete_gaussian", {"rho": 1, "delta": "1e-6"}, "A delta needs an epsilon"),
        ("discrete_gaussian", {}, "A budget is either"),
        ("discrete_gaussian", {"rho": 0}, "makes no sense"),
        ("discrete_gaussian", {"rho": -1}, "makes no sense"),
        ("discrete_gaussian", {"rho": "1e50"}, "makes no sense"),
        ("discrete_gaussian", {"rho": "1e-50"}, "makes no sense"),
        ("discrete_gaussian", {"epsilon": 1, "delta": 0}, "delta must be above 0"),
        ("discrete_gaussian", {"epsilon": 1, "delta": "1/2"}, "delta must be above 0"),
        ("discrete_gaussian", {"rho": "lots"}, "'lots' is not a number"),
        ("discrete_gaussian", {"rho": True}, "a number such as"),
    ],
)
def test_budgets_that_make_no_sense_or_do_not_fit_are_refused(mechanism, budget, message):
    assert message in refusal(privacy__mechanism=mechanism, privacy__budget=budget)


@pytest.mark.parametrize(
    ("mechanism", "budget"),
    [
        ("discrete_gaussian", {"rho": "1/3"}),
        ("discrete_gaussian", {"epsilon": 2, "delta": "1e-10"}),
        ("discrete_laplace", {"epsilon": 2}),
    ],
)
def test_the_three_pairings_of_mechanism_and_budget(mechanism, budget):
    spec = parse(privacy__mechanism=mechanism, privacy__budget=budget)
    expected = Budget(**{name: Fraction(value) for name, value in budget.items()})
    assert spec.privacy.budget.value() == expected


def test_a_limit_is_rho_or_epsilon_alone():
    assert parse(ledger__limit={"epsilon": 3}).ledger.limit.value() == Budget(epsilon=Fraction(3))
    assert "a limit is rho, or epsilon alone" in refusal(
        ledger__limit={"epsilon": 3, "delta": "1e-6"}
    )
    assert "makes no sense" in refusal(ledger__limit={"rho": 0})


def test_bounds_on_other_units_are_whole_numbers_from_one_up():
    assert parse(ledger__units={"person": 6}).ledger.units == {"person": 6}
    assert parse().ledger.units == {}
    for bound in (0, -1, "6", 1.5, True, 10**7):
        assert "ledger.units.person" in refusal(ledger__units={"person": bound})


# -- shares ---------------------------------------------------------------------------------------


def test_shares_are_uniform_fractions_or_weights():
    assert parse(privacy__shares="uniform").privacy.shares == Shares()
    fractions = {"state": "1/3", "town": "2/3"}
    exact = {"state": Fraction(1, 3), "town": Fraction(2, 3)}
    assert parse(privacy__shares=fractions).privacy.shares == Shares(exact)
    weights = parse(privacy__shares={"weights": fractions}).privacy.shares
    assert weights == Shares(exact, are_weights=True)


@pytest.mark.parametrize(
    "value", ["equal", {}, {"weights": {}}, {"weights": 3}, [1, 2], 1, {"town": "half"}, None]
)
def test_shares_of_another_form_are_refused(value):
    assert "privacy.shares" in refusal(privacy__shares=value)


# -- data -----------------------------------------------------------------------------------------


def cell_refusal(cells) -> str:
    return refusal(data__cells=cells, data__count=REMOVE)


def test_cells_are_columns_added_and_subtracted():
    cells = {"young": "u5 + u15", "old": "pop - u5 - u15", "odd": '"an odd, name" + b'}
    forms = parse(data__cells=cells, data__count=REMOVE).data.cell_forms
    assert forms == {
        "young": {"u5": 1, "u15": 1},
        "old": {"pop": 1, "u5": -1, "u15": -1},
        "odd": {"an odd, name": 1, "b": 1},
    }


@pytest.mark.parametrize(
    "expression",
    ["2 * pop", "pop * 2", "sum(pop)", "pop; DROP TABLE x", "pop pop2", "pop +", "1", "pop / 2",
     "max(pop) OVER ()", "'pop'", "pop -- x", "(pop)", "+ + pop"],
)  # fmt: skip
def test_cells_are_nothing_else(expression):
    """The noise is scaled for a record that counts once."""
    assert "is not a column, or columns joined by + and -" in cell_refusal({"x": expression})


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({}, "at least one cell"),
        ({"x": ""}, "names no column"),
        ({"x": "a + a"}, "uses column 'a' twice"),
        ({"x": "a - a"}, "uses column 'a' twice"),
        ({"x": "a", "y": "a"}, "count column 'a' 2 times"),
        ({"x": "a + b", "y": "b"}, "count column 'b' 2 times"),
        ({"x": "a - b"}, "count column 'b' -1 times"),
        ({"x": "a - b", "y": "a - b"}, "count column"),
    ],
)
def test_cells_in_which_a_record_could_count_twice_are_refused(cells, message):
    assert message in cell_refusal(cells)


def test_a_table_is_wide_or_long():
    assert "not both" in refusal(data__cells={"x": "a"})


# -- hierarchy ------------------------------------------------------------------------------------


def layout(**keys) -> dict:
    return {"source": "areas.csv", **keys}


PREFIXES = {"code": {"column": "geoid"}, "prefixes": {"state": 2, "block": 5}}
BAD_LAYOUTS = {
    "none": (layout(), "exactly one of prefixes"),
    "two": (layout(columns=["a"], **PREFIXES), "exactly one of prefixes"),
    "prefixes without code": (layout(prefixes={"state": 2}), "prefixes need code"),
    "code without prefixes": (layout(columns=["a"], code={"column": "c"}), "code goes with pref"),
    "no prefixes": (layout(**PREFIXES | {"prefixes": {}}), "must grow from level to level"),
    "prefixes that shrink": (layout(**PREFIXES | {"prefixes": {"a": 5, "b": 2}}), "must grow"),
    "equal prefixes": (layout(**PREFIXES | {"prefixes": {"a": 2, "b": 2}}), "must grow"),
    "empty prefix": (layout(**PREFIXES | {"prefixes": {"a": 0, "b": 2}}), "must grow"),
    "negative prefix": (layout(**PREFIXES | {"prefixes": {"a": -1, "b": 2}}), "must grow"),
    "width beyond the last prefix": (
        layout(**PREFIXES | {"code": {"column": "c", "width": 7}}), "must be the whole code"
    ),
    "no width": (layout(**PREFIXES | {"code": {"column": "c", "width": 0}}), "code.width"),
    "a column twice": (layout(columns=["a", "a"]), "names a column twice"),
    "levels beside columns": (layout(columns=["a"], levels=["x"]), "levels goes with parent_child"),
    "two files": (layout(parent_child="areas.csv"), "the file goes there"),
    "two roots": (layout(columns=["a"], root={"x": "1", "y": "2"}), "one level and its code"),
    "a root without code": (layout(columns=["a"], root={"x": ""}), "one level and its code"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_LAYOUTS)
def test_hierarchies_of_no_or_two_layouts_are_refused(case):
    hierarchy, message = BAD_LAYOUTS[case]
    assert message in refusal(hierarchy=hierarchy)


def test_a_parent_child_file_may_be_named_alone_or_with_its_columns():
    short = parse(hierarchy={"parent_child": "tree.csv"}).hierarchy
    assert (short.file, short.parent_child.child, short.parent_child.parent) == (
        "tree.csv", "child", "parent",
    )  # fmt: skip
    full = {"source": "tree.csv", "child": "id", "parent": "up", "width": 4}
    hierarchy = parse(hierarchy={"parent_child": full, "levels": ["x", "y"]}).hierarchy
    assert (hierarchy.file, hierarchy.code_width, hierarchy.levels) == ("tree.csv", 4, ("x", "y"))


def test_areas_from_the_confidential_file_must_be_declared_public(tmp_path):
    (tmp_path / "link.csv").symlink_to(tmp_path / "people.csv")
    (tmp_path / "people.csv").write_text("town\n")
    for same in ("people.csv", "./people.csv", str(tmp_path / "people.csv"), "link.csv"):
        content = changed(SPEC, hierarchy__source=same)
        with pytest.raises(SpecError, match="comes from the confidential file"):
            Spec.parse(content, tmp_path)
        content["hierarchy"]["public"] = True
        Spec.parse(content, tmp_path)
    tree = {"parent_child": "people.csv"}
    with pytest.raises(SpecError, match="comes from the confidential file"):
        Spec.parse(changed(SPEC, hierarchy=tree), tmp_path)


# -- places ---------------------------------------------------------------------------------------


def test_relative_paths_are_taken_from_the_folder_of_the_spec(tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    spec = load(tmp_path, yaml.safe_dump(changed(SPEC, ledger__path="sub/l.sqlite")))
    assert spec.resolve("data/x.csv") == tmp_path / "data" / "x.csv"
    assert spec.resolve("/elsewhere/x.csv") == Path("/elsewhere/x.csv")
    assert spec.ledger_path == tmp_path / "sub" / "l.sqlite"
    assert spec.default_run_folder == tmp_path / "runs" / "towns"


def test_the_public_spec_leaves_out_places_and_the_ledger():
    spec = parse(
        data__source="/secret/people.csv",
        hierarchy__source="/secret/areas.csv",
        ledger__path="/secret/ledger.sqlite",
        ledger__limit={"rho": 4},
    )
    public = spec.public()
    assert "secret" not in str(public)
    assert "ledger" not in public
    tree = {"parent_child": {"source": "/secret/tree.csv", "child": "id"}}
    public = parse(hierarchy=tree).public()
    assert "secret" not in str(public)
    assert public["hierarchy"]["parent_child"]["child"] == "id"


def test_the_public_spec_is_the_spec_but_for_places():
    content = changed(
        SPEC, privacy__budget={"rho": "1/3"}, privacy__shares={"weights": {"town": "1/7"}},
        output__confidence="19/20",
    )  # fmt: skip
    public = Spec.parse(content).public()
    again = Spec.parse(yaml.safe_load(yaml.safe_dump(public)))
    assert again.public() == public
    assert again.privacy == Spec.parse(content).privacy
    assert again.output == Spec.parse(content).output


# -- YAML -----------------------------------------------------------------------------------------

GOOD = yaml.safe_dump(SPEC, sort_keys=False)
BAD_YAML = {
    "a key twice": (GOOD + "kind: counts\n", "Line .*: key 'kind' occurs twice"),
    "a key twice, deep down": (
        GOOD.replace("rho: 1", "rho: 1\n    rho: 2"), "Line .*: key 'rho' occurs twice"
    ),
    "a share twice": (GOOD + "x: {town: 1/2, town: 1/2}\n", "key 'town' occurs twice"),
    "an anchor": (GOOD.replace("towns", "&t towns", 1), "anchors and aliases are not used"),
    "an alias": ("a: &x 1\nb: *x\n", "anchors and aliases are not used"),
    "a bomb": (
        "a: &a [x, x]\n" + "".join(f"{c}: &{c} [*{p}, *{p}]\n" for p, c in pairwise("abcdefghi")),
        "anchors and aliases are not used",
    ),
    "a merge": (GOOD + "<<: {kind: counts}\n", "not readable YAML"),
    "a number as a key": (GOOD + "5: x\n", "the key 5 is not text; quote it"),
    "a yes as a key": (GOOD + "yes: x\n", "the key True is not text"),
    "a list as a key": (GOOD + "? [a]\n: x\n", "is not text"),
    "an object": (GOOD + "x: !!python/object:os.system {}\n", "not readable YAML"),
    "a tag": (GOOD + "x: !secret y\n", "not readable YAML"),
    "an octal number": (GOOD.replace("rho: 1", "rho: 010"), "'010' is not a plain whole number"),
    "a hexadecimal number": (GOOD.replace("rho: 1", "rho: 0x10"), "not a plain whole number"),
    "minutes": (GOOD.replace("rho: 1", "rho: 1:30"), "not a plain whole number"),
    "a number of 5000 digits": (GOOD.replace("rho: 1", "rho: " + "9" * 5000), "not readable YAML"),
    "a list": ("- a\n- b\n", "must hold keys and values"),
    "text": ("just text", "must hold keys and values"),
    "nothing": ("", "must hold keys and values"),
    "two documents": (GOOD + "---\n" + GOOD, "not readable YAML"),
    "brackets": ("a: [", "not readable YAML .line"),
    "depth": ("[" * 100_000, "not readable YAML"),
    "binary": (b"\xff\xfe\x00\x01", "not readable YAML"),
    "a tab": ("a:\n\t- b\n", "not readable YAML .line 2"),
    "control characters": ("a: \x07\n", "not readable YAML"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(100), "not readable YAML"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_YAML)
def test_what_people_do_not_mean_is_refused(tmp_path, case):
    text, message = BAD_YAML[case]
    with pytest.raises(SpecError, match=message) as refused:
        load(tmp_path, text)
    assert str(refused.value).startswith(str(tmp_path / "spec.yaml"))
    assert "\n" not in str(refused.value)


def test_codes_of_digits_are_quoted_or_refused(tmp_path):
    root = GOOD.replace("hierarchy:\n", "hierarchy:\n  root: {world: CODE}\n")
    assert load(tmp_path, root.replace("CODE", '"01"')).hierarchy.root == {"world": "01"}
    with pytest.raises(SpecError, match="if it is a code, quote it"):
        load(tmp_path, root.replace("CODE", "01"))
    with pytest.raises(SpecError, match=r"hierarchy\.root\.world"):
        load(tmp_path, root.replace("CODE", "11"))


def test_dates_keep_their_spelling(tmp_path):
    assert (
        load(tmp_path, GOOD.replace("release: towns", "release: 2010-04-01")).release
        == "2010-04-01"
    )


def test_huge_files_are_not_parsed(tmp_path):
    with pytest.raises(SpecError, match="larger than a spec can be"):
        load(tmp_path, GOOD + "# " + "x" * 1_000_000)


def test_what_is_no_file_is_no_spec(tmp_path):
    with pytest.raises(SpecError, match="There is no spec at"):
        Spec.load(tmp_path / "missing.yaml")
    with pytest.raises(SpecError, match="is not a file"):
        Spec.load(tmp_path)
    with pytest.raises(SpecError, match="is not a file"):
        Spec.load("/dev/zero")


def test_a_file_that_may_not_be_read_is_no_spec(tmp_path, monkeypatch):
    (tmp_path / "spec.yaml").write_text(GOOD)

    def fail(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(yaml_reader.Path, "read_text", fail)
    with pytest.raises(SpecError, match=r"could not be read \(Permission denied\)"):
        Spec.load(tmp_path / "spec.yaml")


# -- specs are values -----------------------------------------------------------------------------


def test_a_spec_cannot_be_changed():
    spec = parse()
    with pytest.raises(ValueError, match="frozen"):
        spec.release = "other"
    with pytest.raises(ValueError, match="frozen"):
        spec.privacy.unit = "other"


def test_parsing_does_not_touch_its_argument():
    content = changed(SPEC, hierarchy={"parent_child": "tree.csv"})
    before = changed(content)
    Spec.parse(content)
    assert content == before
