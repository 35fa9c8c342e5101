"""Runs every check on a run folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from trellis.errors import LedgerError, RunFolderError, SourceError, TrellisError
from trellis.execution.progress import in_parts
from trellis.verify.documents import withdrawn
from trellis.verify.files.office_tree import like_the_office
from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import Unreadable
from trellis.verify.kinds import checks_of
from trellis.verify.ledger import against

_MISSHAPEN = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError,
    pa.ArrowException, TrellisError,
)  # fmt: skip
"""What content of another form leads to; a stranger's folder may hold anything."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One promise and what was found to break it; nothing if it holds.

    `notes` say what was checked on a sample only, or not at all. `is_reduced` says that the folder
    states an older format, another version or a poor fit, which turned checks off.
    """

    check: str
    promise: str
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()
    is_reduced: bool = False

    @property
    def holds(self) -> bool:
        return not self.problems


def verify_run(
    path: str | Path, ledger: str | Path | None = None, hierarchy: str | Path | None = None
) -> list[Finding]:
    """Check a finished run; files that cannot be read count as problems.

    With the ledger that paid for the run, its measurements and its cost are checked against it;
    with the office's own file of areas, its tree.
    """
    path = Path(path)
    if not (path / "manifest.json").exists():
        if (path / "run.json").exists():
            raise RunFolderError(f"{path} is not finished. Run the same command again to resume.")
        raise RunFolderError(f"{path} is not a run folder: it has no run.json.")
    own = () if hierarchy is None else (like_the_office(Path(hierarchy)),)
    paid = () if ledger is None else (against(Path(ledger)),)
    run = RunFiles(path)
    _refuse_newer_formats(run)
    checks = checks_of(run)
    checks += (withdrawn.withdrawn,) if withdrawn.FILE in run.sizes else ()
    return [carry_out(check, run) for check in in_parts(checks + own + paid)]


def is_reduced(findings: Sequence[Finding]) -> bool:
    """Whether some checks were turned off by what the folder says about itself."""
    return any(finding.is_reduced for finding in findings)


def as_data(findings: Sequence[Finding], notice: str = "") -> dict[str, Any]:
    """What was found, for programs; `notice` is what is said of a release that was withdrawn."""
    return {
        "holds": all(finding.holds for finding in findings),
        "reduced": is_reduced(findings),
        "notice": notice or None,
        "promises": [
            {
                "check": finding.check,
                "promise": finding.promise,
                "holds": finding.holds,
                "problems": list(finding.problems),
                "notes": list(finding.notes),
            }
            for finding in findings
        ],
    }


def _refuse_newer_formats(run: RunFiles) -> None:
    for name in ("plan", "identity", "privacy"):
        with suppress(Unreadable):  # the checks say what is wrong
            getattr(run, name)


def carry_out(check: Callable[[RunFiles], Iterator[str]], run: RunFiles) -> Finding:
    """One check; what cannot be read, or has another form, is a problem too."""
    problems: list[str] = []
    run.notes.clear()
    run.is_reduced = False
    try:
        problems.extend(check(run))
    except Unreadable as error:
        problems.append(str(error))
    except (LedgerError, SourceError):  # about a file of the reader's, not about the run
        raise
    except OSError as error:
        problems.append(f"a file could not be read ({error.strerror})")
    except _MISSHAPEN as error:
        problems.append(f"a file does not have the promised form ({type(error).__name__})")
    promise = (check.__doc__ or "").strip().partition("\n")[0]
    return Finding(check.__name__, promise, tuple(problems), tuple(run.notes), run.is_reduced)
