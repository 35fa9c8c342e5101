"""Runs every check on a run folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from trellis.errors import LedgerError, RunFolderError, TrellisError
from trellis.execution.progress import in_parts
from trellis.verify import areas, group_sizes, promises, spine, tables
from trellis.verify.files import data_package, withdrawn
from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import Unreadable
from trellis.verify.flows import margins as flow_margins
from trellis.verify.flows import tables as flows
from trellis.verify.histograms import centres as histogram_centres
from trellis.verify.histograms import measurements as histogram_measurements
from trellis.verify.histograms import real_estimates as real_histograms
from trellis.verify.histograms import tables as histograms
from trellis.verify.ledger import against

Check = Callable[[RunFiles], Iterator[str]]

_COMMON: tuple[Check, ...] = (
    promises.inventory,
    promises.hashes,
    promises.identity,
    promises.budget,
    promises.privacy,
    data_package.data_package,
)
_COUNTS: tuple[Check, ...] = (
    tables.hierarchy,
    promises.measurements,
    tables.columns,
    tables.signs,
    tables.sums,
    tables.intervals,
    tables.invariants,
    tables.estimates,
    tables.csv,
)
_HISTOGRAMS: tuple[Check, ...] = (
    tables.hierarchy,
    histogram_measurements.measured_histograms,
    histograms.histogram_columns,
    histograms.histogram_margins,
    histogram_centres.histogram_centres,
    tables.csv,
)
_BY_KIND: dict[str, tuple[Check, ...]] = {
    "counts": _COUNTS,
    "group_sizes": (*_COUNTS, group_sizes.monotone, group_sizes.statistics),
    "histogram": (
        *_HISTOGRAMS,
        histograms.histogram_counts,
        histograms.exact_totals,
        histograms.structural_zeros,
        histograms.constraints,
        histograms.edit_rules,
        histograms.microdata,
    ),
    "real_histogram": (
        *_HISTOGRAMS,
        real_histograms.real_counts,
        real_histograms.real_totals,
        real_histograms.no_rules,
    ),
    "flows": (
        flows.flow_tree,
        flows.flow_measurements,
        flows.flow_tables,
        flows.flow_sums,
        flow_margins.flow_margins,
        flow_margins.flow_intervals,
        flows.flow_matrix,
        tables.csv,
    ),
}

_CHECKS_WITH: dict[str, Callable[[RunFiles], Iterator[str]]] = {
    "spine": spine.spine,
    "areas": areas.areas,
}


_MISSHAPEN = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError,
    pa.ArrowException, TrellisError,
)  # fmt: skip
"""What content of another form leads to; a stranger's folder may hold anything."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One promise and what was found to break it; nothing if it holds."""

    check: str
    promise: str
    problems: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return not self.problems


def verify_run(path: str | Path, ledger: str | Path | None = None) -> list[Finding]:
    """Check a finished run; files that cannot be read count as problems.

    With the ledger that paid for the run, its measurements and its cost are checked against it.
    """
    path = Path(path)
    if not (path / "manifest.json").exists():
        if (path / "run.json").exists():
            raise RunFolderError(f"{path} is not finished. Run the same command again to resume.")
        raise RunFolderError(f"{path} is not a run folder: it has no run.json.")
    paid = () if ledger is None else (against(Path(ledger)),)
    run = RunFiles(path)
    _refuse_newer_formats(run)
    checks = _COMMON + _BY_KIND.get(_kind(run), _COUNTS)
    checks += tuple(check for key, check in _CHECKS_WITH.items() if key in _plan_keys(run))
    checks += (withdrawn.withdrawn,) if withdrawn.FILE in run.sizes else ()
    return [_carry_out(check, run) for check in in_parts(checks + paid)]


def _refuse_newer_formats(run: RunFiles) -> None:
    for name in ("plan", "identity", "privacy"):
        with suppress(Unreadable):  # the checks say what is wrong
            getattr(run, name)


def _kind(run: RunFiles) -> str:
    try:
        if "histogram" in run.plan:
            return "histogram" if run.is_whole else "real_histogram"
        return str(run.plan["kind"])
    except (Unreadable, KeyError, TypeError):
        return ""  # the checks say what is wrong with the plan


def _plan_keys(run: RunFiles) -> set[str]:
    try:
        return set(run.plan)
    except Unreadable:
        return set()


def _carry_out(check: Callable[[RunFiles], Iterator[str]], run: RunFiles) -> Finding:
    problems: list[str] = []
    try:
        problems.extend(check(run))
    except Unreadable as error:
        problems.append(str(error))
    except LedgerError:  # about the ledger, not about the run
        raise
    except OSError as error:
        problems.append(f"a file could not be read ({error.strerror})")
    except _MISSHAPEN as error:
        problems.append(f"a file does not have the promised form ({type(error).__name__})")
    return Finding(check.__name__, (check.__doc__ or "").strip(), tuple(problems))
