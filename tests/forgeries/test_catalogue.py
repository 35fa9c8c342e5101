"""Every forgery of the catalogue is noticed by its check, or passes and is said to pass."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from forgeries.forgery import REDUCED, Forgery, Unnoticed
from forgeries.numbers import NUMBERS
from forgeries.smuggled import SMUGGLED
from forgeries.statements import STATEMENTS, in_older_format
from forgeries.unnoticed import UNNOTICED, arguments
from forging import fit_manifest
from trellis.cli.app import app
from trellis.verify import is_reduced, verify_run
from trellis.verify.documents.withdrawn import withdrawn
from trellis.verify.files.run_files import RunFiles
from trellis.verify.kinds import checks_of
from trellis.verify.verify import carry_out

CATALOGUE = STATEMENTS + SMUGGLED + NUMBERS
CASES = [(forgery, world) for forgery in CATALOGUE for world in forgery.worlds]
FINDERS = {"ledger": "ledger", "hierarchy": "office_tree"}
"""The check that an option of `trellis verify` adds."""
TRUST = Path(__file__).parents[2] / "docs" / "trust.md"


def named(check: str, run: Path):
    """One check on a run; the others are carried out on honest runs elsewhere."""
    files = RunFiles(run)
    (found,) = {c for c in (*checks_of(files), withdrawn) if c.__name__ == check}
    return carry_out(found, files)


@pytest.mark.parametrize(
    ("forgery", "world"), CASES, ids=[f"{forgery.name}: {world}" for forgery, world in CASES]
)
def test_a_forgery_is_noticed(copied, forgery: Forgery, world: str):
    run = copied(world)
    forgery.forge(run)
    fit_manifest(run)
    assert named("hashes", run).holds
    if forgery.check == REDUCED:
        assert is_reduced(verify_run(run))
    else:
        assert not named(forgery.check, run).holds


@pytest.mark.parametrize("forgery", UNNOTICED, ids=[forgery.name for forgery in UNNOTICED])
def test_what_nobody_can_notice_is_not_noticed(copied, honest, forgery: Unnoticed):
    """Unless the reader has the ledger, or the office's own file of areas."""
    folder, run = honest(forgery.world).parent, copied(forgery.world)
    forgery.forge(run)
    fit_manifest(run)
    findings = verify_run(run)
    assert [finding.problems for finding in findings if not finding.holds] == []
    assert not is_reduced(findings)
    if forgery.finder:
        found = verify_run(run, **arguments(forgery, folder))
        broken = [finding.check for finding in found if not finding.holds]
        assert broken == [FINDERS[forgery.finder]]


def test_there_are_many_forgeries_and_no_two_of_a_name():
    names = [forgery.name for forgery in CATALOGUE + UNNOTICED]
    assert len(set(names)) == len(names) >= 40


def test_the_page_on_trust_lists_the_same_forgeries():
    """By the check that notices, or by the option that finds what verification alone cannot."""
    page = TRUST.read_text(encoding="utf-8")
    listed = dict(re.findall(r"<!-- (\w+) -->\n(.*?)<!-- end -->", page, re.DOTALL))
    assert listed == {
        "statements": by_check(STATEMENTS),
        "smuggled": by_check(SMUGGLED),
        "numbers": by_check(NUMBERS),
        "unnoticed": unnoticed_list(),
    }


def by_check(forgeries: list[Forgery]) -> str:
    checks: dict[str, list[str]] = {}
    for forgery in forgeries:
        checks.setdefault(forgery.check, []).append(forgery.name)
    rows = [f"| {'; '.join(names)} | {_who(check)} |" for check, names in checks.items()]
    return "\n".join(["| forgery | noticed by |", "|---|---|", *rows]) + "\n"


def _who(check: str) -> str:
    return "says `REDUCED CHECKS`" if check == REDUCED else f"`{check}`"


def unnoticed_list() -> str:
    lines = [
        f"- {forgery.name}" + (f" (`--{forgery.finder}` finds it)" if forgery.finder else "")
        for forgery in UNNOTICED
    ]
    return "\n".join(lines) + "\n"


def test_reduced_checks_are_said_first_and_last_and_in_json(copied):
    """Also where little else is said; a full verification does not say it."""
    run = copied("counts")
    whole = CliRunner().invoke(app, ["verify", str(run), "--json"])
    assert json.loads(whole.stdout)["reduced"] is False
    in_older_format(run)
    fit_manifest(run)
    for options in ([], ["--quiet"]):
        said = CliRunner().invoke(app, ["verify", str(run), *options])
        lines = said.stdout.splitlines()
        assert said.exit_code == 0
        assert lines[0].startswith("REDUCED CHECKS")
        assert "REDUCED CHECKS" in lines[-1]
        assert any("the plan was not derived from spec.yaml" in line for line in lines)
        assert not re.search(r"All \d+ promises hold", said.stdout)
    found = json.loads(CliRunner().invoke(app, ["verify", str(run), "--json"]).stdout)
    assert found["holds"]
    assert found["reduced"]
