"""Processor time of this tree beside that of another one, interleaved.

    python benchmarks/before_and_after.py OTHER [RUNS]

OTHER is a checkout of an earlier commit, with the same environment. Each piece of work runs in a
process of its own, once to compile, then RUNS times (five unless told) in turn for both trees; the
table has medians of user and system time. Data comes from `shared/data` beside the checkout.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parents[1]
TRELLIS = "from trellis.cli import main; main()"
DEMOS: dict[str, list[str]] = {"demo": [], "histogram": ["--histogram"]}

PIECES = {
    "accounting": """
from fractions import Fraction
from trellis.privacy import Accountant, DiscreteGaussian
a = Accountant("replace")
for i in range(1, 25):
    a = a.add(DiscreteGaussian(Fraction(7 * i + 3, 5)), 2)
for d in (1e-4, 1e-6, 1e-8, 1e-10, 1e-12):
    a.epsilon(d), a.tradeoff(d)
""",
    "sampling": """
from trellis.privacy import DiscreteGaussian, DiscreteLaplace
for _ in range(5):
    DiscreteGaussian("1000/7").sample(4_000_000), DiscreteLaplace("31/3").sample(4_000_000)
""",
    "projection": """
import numpy as np
from trellis.estimate import project_l2_families, project_chebyshev_families
rng = np.random.default_rng(1)
start = np.arange(0, 4_000_001, 20); x = rng.normal(5, 9, 4_000_000).round().astype(np.int64)
totals = rng.integers(0, 300, start.size - 1)
for _ in range(10):
    project_l2_families(x, start, totals), project_chebyshev_families(x, start, totals)
""",
    "histogram_solver": """
import numpy as np
from trellis.model import Schema
from trellis.estimate import round_family, solve_family
rng = np.random.default_rng(2)
schema = Schema({"a": [str(i) for i in range(10)], "b": [str(i) for i in range(10)],
                 "c": [str(i) for i in range(7)]})
width = {"total": 1, "a": 10, "a * b": 100, "detailed": 700}
queries = list(width)
for _ in range(12):
    truth = rng.poisson(0.4, (20, 700)); parent = truth.sum(axis=0)
    marginal = {"total": truth.sum(1, keepdims=True), "a": truth.reshape(20, 10, 70).sum(2),
                "a * b": truth.reshape(20, 100, 7).sum(2), "detailed": truth}
    values = {q: marginal[q] + rng.normal(0, 3, (20, width[q])) for q in queries}
    variances = {q: np.full((20, width[q]), 9.0) for q in queries}
    made = solve_family(schema, parent, queries, values, variances)
    round_family(schema, parent, made.children, queries)
""",
    "histogram_state": "RUN histogram",
    "nation (10 states)": "RUN nation",
    "flows (commuting)": "RUN commuting",
    "group_sizes (households)": "RUN households",
    "counts (demo)": "RUN demo",
}


def main(other: Path, runs: int) -> None:
    print(f"seconds of processor time, median of {runs}")
    print(f"{'':26}{'before':>10}{'after':>10}{'ratio':>8}")
    for name, code in PIECES.items():
        work = _release(code.split()[1]) if code.startswith("RUN") else _program(code)
        for tree in (other, HERE):
            work(tree)
        pairs = [(work(other), work(HERE)) for _ in range(runs)]
        before, after = (median(times) for times in zip(*pairs, strict=True))
        print(f"{name:26}{before:10.2f}{after:10.2f}{after / before:8.3f}", flush=True)


def _program(code: str) -> Callable[[Path], float]:
    return lambda tree: _cpu(tree, "-c", code)


def _release(example: str) -> Callable[[Path], float]:
    """A complete release of an example, or of a demo that both trees read in place."""
    demo = Path(tempfile.mkdtemp()) / example
    if example in DEMOS:
        _cpu(HERE, "-c", TRELLIS, "demo", *DEMOS[example], "--quiet", "--out", str(demo))

    def work(tree: Path) -> float:
        folder = demo if example in DEMOS else _with_data(tree, example)
        spec = folder / ".before-and-after.yaml"
        with tempfile.TemporaryDirectory() as out:
            spec.write_text(_own_ledger(folder / "spec.yaml", Path(out) / "ledger.sqlite"))
            try:
                return _cpu(tree, "-c", TRELLIS, "run", str(spec), "--quiet", "--out", f"{out}/run")
            finally:
                spec.unlink()

    return work


def _with_data(tree: Path, example: str) -> Path:
    folder = tree / "examples" / example
    if not (folder / "data").is_dir():
        _cpu(tree, str(folder / "get_data.py"), *(["10"] if example == "nation" else []))
    return folder


def _own_ledger(spec: Path, ledger: Path) -> str:
    lines = [line for line in spec.read_text().splitlines() if not line.startswith("ledger:")]
    return "\n".join([*lines, f"ledger: {{path: {ledger}}}", ""])


def _cpu(tree: Path, *arguments: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": str(tree / "src")},
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{tree}: {done.stderr[-400:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 5)
