"""The import contracts trip when someone breaks them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

BREACHES = {
    "true counts after the measurement step": (
        "estimate/methods.py", "from trellis.confidential.counts import TrueCounts",
        "True counts stop at the measurement file"),
    "true counts through a middleman": (
        "workflow/public_half.py", "from trellis.workflow import confidential_half",
        "True counts stop at the measurement file"),
    "the tabulation of group sizes after the measurement step": (
        "workflow/public_half.py", "from trellis.ingest.records.group_sizes import Sizes",
        "True counts stop at the measurement file"),
    "a descent of histograms after the measurement step": (
        "workflow/public_half.py", "from trellis.workflow import histogram_descent",
        "True counts stop at the measurement file"),
    "an evaluation inside a run": (
        "workflow/api.py", "from trellis.workflow.evaluation.evaluate import evaluate_run",
        "The truth is compared with a release by one command"),
    "true errors in the report": (
        "evaluate/sections.py", "from trellis.confidential.metrics import level_errors",
        "True counts stop at the measurement file"),
    "verification that trusts the estimator": (
        "verify/tables.py", "from trellis.estimate import gls",
        "Verification shares no code"),
    "an upward import": (
        "privacy/budget.py", "from trellis.model.plans.plan import Plan",
        "Layers"),
    "a stage that imports another": (
        "release/tables.py", "from trellis.planning import invariants",
        "Layers"),
    "true counts in a reader of public tables": (
        "ingest/public/registers.py", "from trellis.ingest.records import group_sizes",
        "Readers of public tables see no true counts"),
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
    broken = [line for line in done.stdout.splitlines() if " BROKEN" in line]
    assert any(contract in line for line in broken), done.stdout
