"""The ledger as a user holds it: what is spent, what may be spent, and what became of a release."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from trellis.api.releases import Release
from trellis.api.runs import Run
from trellis.errors import PrivacyError
from trellis.privacy.budget import Budget
from trellis.privacy.ledger import Ledger as LedgerFile
from trellis.privacy.ledger.units import Tie, UnitBound
from trellis.spec.sections.values import to_fraction
from trellis.workflow.ledger_record import dataset_record, ledger_record, require_dataset
from trellis.workflow.public.run_folder import RunFolder


class Ledger(LedgerFile):
    """What has been spent on each data set, in one small SQLite file.

    Runs charge it themselves. Keep it as confidential as the records.

    >>> release = spec.run()
    >>> ledger = tr.Ledger("ledger.sqlite")
    >>> ledger.datasets()
    ['people-2026']
    >>> [entry.release for entry in ledger.entries("people-2026")]
    ['towns']
    >>> ledger.account("people-2026").total("person").rho
    Fraction(1, 2)
    """

    def __init__(self, path: str | Path = "ledger.sqlite") -> None:
        super().__init__(Path(path))

    def limit(
        self,
        dataset: str,
        unit: str,
        *,
        rho: int | float | str | None = None,
        epsilon: int | float | str | None = None,
        below_spent: bool = False,
    ) -> None:
        """Set or change the most that may ever be spent on a data set, for one unit.

        `below_spent` allows a limit below what is spent, so that nothing more is released.

        >>> ledger = tr.Ledger("other.sqlite")
        >>> ledger.limit("people-2026", "person", rho=4)
        >>> ledger.account("people-2026").limits["person"].rho
        Fraction(4, 1)
        """
        given = {"rho": rho, "epsilon": epsilon}
        stated = {name: _exact(name, value) for name, value in given.items() if value is not None}
        self.set_limit(dataset, unit, Budget(**stated), below_spent=below_spent)

    def to_json(self, dataset: str | None = None) -> dict[str, Any]:
        """What `trellis ledger --json` prints: charges, sums and limits of one data set, or of all.

        >>> release = spec.run()
        >>> tr.Ledger("ledger.sqlite").to_json("people-2026")["units"]["person"]["rho"]
        '1/2'
        """
        if dataset is None:
            return ledger_record(self)
        require_dataset(self, dataset)
        return dataset_record(self, dataset)

    def made_of(self, dataset: str, unit: str, others: Mapping[str, int]) -> None:
        """Declare how many other units one unit is made up of at most, such as `{"person": 6}`."""
        for other, most in others.items():
            self.declare(dataset, UnitBound(unit, other, Tie.MADE_OF, most))

    def part_of(self, dataset: str, unit: str, others: Mapping[str, int]) -> None:
        """Declare how many other units one unit is part of at most, such as `{"household": 1}`."""
        for other, most in others.items():
            self.declare(dataset, UnitBound(unit, other, Tie.PART_OF, most))

    def backup(self, path: str | Path) -> None:
        """Write a consistent copy into a new file; keep it as confidential as the ledger."""
        super().backup(Path(path))

    def restore(self, path: str | Path) -> int:
        """Add all that a copy has and this ledger lacks; returns how many charges were added."""
        return super().restore(Path(path))

    def enter_run(self, run: Run | Release | str | Path) -> bool:
        """Add the charge of a run folder if this ledger lacks it; False if it is here already."""
        from trellis.workflow.ledger_runs import enter_run

        return enter_run(self, _folder(run))

    def withdraw_run(
        self,
        run: Run | Release | str | Path,
        *,
        reason: str | None = None,
        superseded_by: Run | Release | str | Path | None = None,
    ) -> str:
        """Record that a release is withdrawn, here and in its folder; its charge stays.

        Returns the notice that `verify` and the report then show first. `reason` becomes public.
        """
        from trellis.workflow.ledger_runs import withdraw_run

        folder, newer = _folder(run), None if superseded_by is None else _folder(superseded_by)
        return withdraw_run(self, folder.plan().dataset, folder, reason, newer)

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"


def _exact(name: str, value: int | float | str) -> Fraction:
    try:
        return to_fraction(value)
    except ValueError as error:
        raise PrivacyError(f"{name}: {error}.") from None


def _folder(run: Run | Release | str | Path) -> RunFolder:
    folder = RunFolder(Path(run.path if isinstance(run, Run | Release) else run))
    folder.require_started()
    return folder
