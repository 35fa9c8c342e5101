"""Privacy contract: noise is drawn through two doors, and each lets through only what it should.

`ChargedNoise` draws for a release what a claim of the ledger paid for; `PublicNoise` draws for
numbers that are public. No other code calls a sampler.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import trellis
from seeded_bits import SeededBits
from trellis.errors import LedgerError, PrivacyError
from trellis.measure.charged_noise import ChargedNoise
from trellis.privacy.ledger import Claim
from trellis.privacy.mechanisms import DiscreteGaussian
from trellis.privacy.public_noise import PublicNoise
from worlds import plan_for

SRC = Path(trellis.__file__).parent

# -- who draws ------------------------------------------------------------------------------------

DOORS = ("measure/charged_noise.py", "privacy/public_noise.py")
KNOWN_TYPES = ("ChargedNoise", "Reader")
"""`.sample` of an argument of these types draws nothing, or draws through the first door."""

MAKERS = {
    "ChargedNoise": ("workflow/confidential/measuring.py",),
    "Claim": ("privacy/ledger/file.py",),
    "PublicNoise": (
        "workflow/outlook/simulate_counts.py",
        "workflow/outlook/simulate_histograms.py",
    ),
}


def drawing(tree: ast.AST, known: tuple[str, ...] = ()) -> Iterator[int]:
    """Lines that reach for a method `sample` of anything but the arguments `known`."""
    for node in ast.iter_child_nodes(tree):
        names = known
        if isinstance(node, ast.FunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            typed = {a.arg: ast.unparse(a.annotation) for a in arguments if a.annotation}
            names = tuple(name for name, kind in typed.items() if kind in KNOWN_TYPES)
        reaches = isinstance(node, ast.Attribute) and node.attr in ("sample", "_sample")
        if reaches and not (isinstance(node.value, ast.Name) and node.value.id in known):
            yield node.lineno
        if isinstance(node, ast.Constant) and node.value == "sample":  # as in getattr
            yield node.lineno
        yield from drawing(node, names)


@cache
def modules() -> dict[str, ast.Module]:
    return {p.relative_to(SRC).as_posix(): ast.parse(p.read_text()) for p in SRC.rglob("*.py")}


def test_samplers_are_called_in_two_files_only():
    found = {name: lines for name, tree in modules().items() if (lines := [*drawing(tree)])}
    assert set(found) == set(DOORS), found


@pytest.mark.parametrize(
    "line",
    [
        "def f(query): return query.noise.sample(3)",
        "def f(noise): return noise.sample(3)",
        "draw = DiscreteGaussian(1).sample",
        "def f(noise): return getattr(noise, 'sample')(3)",
        "from trellis.privacy import mechanisms; mechanisms._sample(1, 2, None)",
        "def f(noise: ChargedNoise, query): return [query.noise.sample(3) for _ in noise]",
        "def f(noise: ChargedNoise):\n    def g(noise): return noise.sample(3)",
    ],
)
def test_mutation_another_caller_is_found(line):
    assert [*drawing(ast.parse(line))]


@pytest.mark.parametrize("name", MAKERS)
def test_each_door_is_opened_in_known_places_only(name):
    made = {
        module
        for module, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == name
    }
    assert made == set(MAKERS[name])


def test_public_noise_is_imported_where_it_is_used_and_nowhere_else():
    """Also under another name; the import linter forbids it to the packages that measure."""
    importing = {
        module
        for module, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom) and "public_noise" in ast.unparse(node)
    }
    assert importing == set(MAKERS["PublicNoise"])


# -- what the first door refuses ------------------------------------------------------------------

PLAN = plan_for(unprotected_totals=("state",))
EXACT = next(q for q in PLAN.queries if q.noise is None)
TOWN = next(q for q in PLAN.queries if q.noise is not None)
SIZE = PLAN.n_nodes(TOWN)


def charged(plan=PLAN, seed=1):
    return ChargedNoise(plan, Claim("run", "token", plan.privacy), SeededBits(seed))


def test_what_was_planned_and_charged_is_drawn_once():
    noise, twin = charged(), TOWN.noise.sample(SIZE, SeededBits(1))
    assert np.array_equal(noise.added_to(TOWN, np.zeros((SIZE, 1), np.int64)).ravel(), twin)
    with pytest.raises(PrivacyError, match="All noise that was charged"):
        noise.sample(TOWN, 1)


def test_draws_in_parts_add_up_to_what_was_charged_and_no_more():
    noise = charged()
    for _ in range(SIZE):
        noise.sample(TOWN, 1)
    with pytest.raises(PrivacyError, match="All noise that was charged"):
        noise.sample(TOWN, 1)


def test_more_numbers_than_charged_are_refused_at_once():
    with pytest.raises(PrivacyError, match="All noise that was charged"):
        charged().sample(TOWN, SIZE + 1)


def test_a_refused_draw_does_not_leave_room_for_a_smaller_one():
    noise = charged()
    with suppress(PrivacyError):
        noise.sample(TOWN, SIZE + 1)
    with pytest.raises(PrivacyError, match="All noise that was charged"):
        noise.sample(TOWN, SIZE)


def test_a_negative_number_leaves_no_room_for_more():
    noise = charged()
    with pytest.raises(PrivacyError):
        noise.sample(TOWN, -1)
    with pytest.raises(PrivacyError):
        noise.sample(TOWN, SIZE + 1)


@pytest.mark.parametrize("other", [{"release": "other"}, {"dataset": "other"}])
def test_claims_are_compared_by_what_was_charged(other):
    """The name of a release is no part of a price: the claim names the run, the run the folder."""
    assert charged(replace(PLAN, **other)).sample(TOWN, SIZE).size == SIZE


@pytest.mark.parametrize(
    "changes",
    [
        {"budget": plan_for().budget.__class__(rho=Fraction(2))},
        {"max_contribution": 2},
        {"unprotected_totals": ()},
        {"required": ("something",)},
    ],
    ids=str,
)
def test_a_claim_of_another_plan_is_refused(changes):
    other = plan_for(**{"unprotected_totals": ("state",)} | changes)
    with pytest.raises(LedgerError, match="another plan"):
        ChargedNoise(PLAN, Claim("run", "token", other.privacy), SeededBits(1))


@pytest.mark.parametrize(
    "changes",
    [
        {"level": "state"},
        {"query": "detailed"},
        {"noise": DiscreteGaussian(TOWN.noise.sigma_squared / 4)},
        {"noise": DiscreteGaussian(TOWN.noise.sigma_squared * 4)},
        {"share": Fraction(1, 2)},
        {"share_class": 0},
    ],
    ids=str,
)
def test_a_query_that_was_not_planned_is_refused(changes):
    noise, query = charged(), replace(TOWN, **changes)
    for draw in (lambda: noise.sample(query, 1), lambda: noise.added_to(query, np.zeros(1, int))):
        with pytest.raises(PrivacyError, match="No noise was charged"):
            draw()
    assert noise.sample(TOWN, SIZE).size == SIZE  # what was planned is still there


def test_an_exact_query_is_answered_as_it_is_and_never_drawn_for():
    noise, answer = charged(), np.arange(3)
    assert noise.added_to(EXACT, answer) is answer
    with pytest.raises(PrivacyError, match="No noise was charged"):
        noise.sample(EXACT, 1)


def test_a_query_made_exact_is_refused():
    """Without noise it would be the truth: a plan that has it noisy does not let it through."""
    with pytest.raises(PrivacyError, match="No noise was charged"):
        charged().added_to(replace(TOWN, share=Fraction(0), noise=None), np.arange(SIZE))


def test_threads_share_what_was_charged():
    noise = charged()

    def draw(_: int) -> int:
        with suppress(PrivacyError):
            return noise.sample(TOWN, 1).size
        return 0

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(draw, range(50 * SIZE))) == SIZE


# -- the second door ------------------------------------------------------------------------------


def test_public_noise_is_that_of_the_law():
    law, answer = DiscreteGaussian(9), np.arange(6).reshape(3, 2)
    found = PublicNoise(SeededBits(4)).added_to(law, answer)
    assert np.array_equal(found, answer + law.sample(6, SeededBits(4)).reshape(3, 2))
    assert PublicNoise().added_to(None, answer) is answer
