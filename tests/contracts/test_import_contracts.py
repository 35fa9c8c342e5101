"""The import contracts trip when someone breaks them."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

BREACHES = {
    "an upward import": (
        "privacy/budget.py", "from trellis.model.plans.plan import Plan",
        "Layers"),
    "a stage that imports another": (
        "release/tables/counts.py", "from trellis.planning.kinds import invariants",
        "Layers"),
    "a spec that reaches for the workflow": (
        "spec/release.py", "from trellis.workflow.kinds import KINDS",
        "Layers"),
    "true counts after the measurement step": (
        "estimate/methods.py", "from trellis.confidential.counts import TrueCounts",
        "True counts stop at the measurement file"),
    "true counts through a middleman": (
        "workflow/public/finishing.py", "from trellis.workflow.confidential import measuring",
        "True counts stop at the measurement file"),
    "the tabulation of group sizes after the measurement step": (
        "workflow/public/kinds/group_sizes.py",
        "from trellis.ingest.records.group_sizes import Sizes",
        "True counts stop at the measurement file"),
    "a descent of histograms after the measurement step": (
        "workflow/public/kinds/histograms.py",
        "from trellis.workflow.confidential import histogram_descent",
        "True counts stop at the measurement file"),
    "the confidential half of a kind in its public half": (
        "workflow/public/kinds/counts.py",
        "from trellis.workflow.confidential.kinds.counts import CONFIDENTIAL",
        "True counts stop at the measurement file"),
    "true counts in a plan": (
        "workflow/preparing/kinds/flows.py", "from trellis.confidential.flows import TrueFlows",
        "True counts stop at the measurement file"),
    "true counts in the outlook": (
        "workflow/outlook/simulate_counts.py",
        "from trellis.confidential.counts import TrueCounts",
        "True counts stop at the measurement file"),
    "a command that plans and measures": (
        "cli/commands/plan.py", "from trellis.workflow.running import measure_run",
        "True counts stop at the measurement file"),
    "true errors in the report": (
        "evaluate/sections.py", "from trellis.confidential.metrics import level_errors",
        "True counts stop at the measurement file"),
    "an evaluation inside a run": (
        "workflow/running.py", "from trellis.workflow.evaluation.evaluate import evaluate_run",
        "The truth is compared with a release by one command"),
    "a sampler without its mechanism": (
        "measure/counts.py", "from trellis.privacy.table_sampler import sample_by_table",
        "Only mechanisms use samplers"),
    "public noise that knows the ledger": (
        "privacy/public_noise.py", "from trellis.privacy.ledger import Claim",
        "Noise that is not charged never meets a ledger"),
    "public noise that knows a true count": (
        "privacy/public_noise.py", "from trellis.confidential.counts import TrueCounts",
        "Noise that is not charged never meets a ledger"),
    "noise that is not charged in the measuring step": (
        "measure/counts.py", "from trellis.privacy.public_noise import PublicNoise",
        "What measures cannot draw noise that is not charged"),
    "noise that is not charged in the tabulation": (
        "ingest/records/flows.py", "from trellis.privacy.public_noise import PublicNoise",
        "What measures cannot draw noise that is not charged"),
    "noise that is not charged beside true counts": (
        "confidential/counts.py", "from trellis.privacy.public_noise import PublicNoise",
        "What measures cannot draw noise that is not charged"),
    "true counts in a reader of public tables": (
        "ingest/public/registers.py", "from trellis.ingest.records import group_sizes",
        "Readers of public tables see no true counts"),
    "verification that trusts the estimator": (
        "verify/counts/tables.py", "from trellis.estimate.best_linear import estimate_gls",
        "Verification shares no code"),
    "an engine outside its file": (
        "ingest/records/counts.py", "import duckdb",
        "Engines are imported only by"),
    "a heavy dependency in the trusted core": (
        "privacy/protection.py", "import pyarrow",
        "Model and privacy rest on"),
}  # fmt: skip


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [command, "--no-cache"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("breach", BREACHES)
def test_breach_is_reported(tmp_path, breach):
    name, planted, contract = BREACHES[breach]
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    path = tmp_path / "src" / "trellis" / name
    path.write_text(f"{path.read_text()}\n{planted}\n")
    done = lint(tmp_path)
    assert done.returncode == 1
    assert contract in broken_in(done.stdout), done.stdout


def broken_in(output: str) -> str:
    """Names of broken contracts; a long name goes on for a second line before its verdict."""
    verdicts = re.split(r" (KEPT|BROKEN)", " ".join(output.splitlines()))
    return " ".join(name for name, verdict in pairwise(verdicts) if verdict == "BROKEN")


def test_every_contract_has_a_breach():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    names = [contract["name"] for contract in listed["contracts"]]
    breached = {contract for _, _, contract in BREACHES.values()}
    assert [n for n in names if not any(n.startswith(b) for b in breached)] == []
    assert [b for b in breached if not any(n.startswith(b) for n in names)] == []


def test_the_house_as_it_stands_keeps_its_contracts():
    assert lint(ROOT).returncode == 0
