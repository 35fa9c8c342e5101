"""A finished release as a user holds it: tables by level, and the plan with its guarantee.

`Release(path)` gives the class of its kind, which has what that kind publishes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from trellis.api.inputs import Number
from trellis.api.pages import list_block
from trellis.api.statements import PrivacyStatement
from trellis.api.tables import Table
from trellis.errors import RunFolderError
from trellis.model.plans.kinds.histograms import HistogramDesign
from trellis.model.plans.plan import Plan
from trellis.model.plans.statement import guarantee_in_words
from trellis.model.results.histogram_estimates import FIT_TOLERANCE
from trellis.model.tables.queries import named_query, parse_query
from trellis.privacy.guarantee import Guarantee
from trellis.release.tables.flow_ranges import flows_between
from trellis.release.tables.histograms import table_name
from trellis.storage.flows import read_flow_level
from trellis.storage.histogram_estimates import read_distance
from trellis.storage.histograms import load_measurement
from trellis.storage.parquet import read_table
from trellis.verify import Finding, as_data, verify_run
from trellis.verify.documents.withdrawn import notice
from trellis.workflow.progress import Progress, Silent
from trellis.workflow.public.facts import FlowFacts
from trellis.workflow.public.finishing import remake_report
from trellis.workflow.public.reestimating import asked_penalty, reestimate
from trellis.workflow.public.run_folder import RunFolder


class Release:
    """A finished release: its tables by level, its plan and its guarantee.

    `Release(path)` opens a run folder and gives the class of its kind.

    >>> release = spec.run()
    >>> release.levels
    ('country', 'region', 'town')
    >>> release["town"].columns
    ['geocode', 'level', 'cell', 'count', 'std_error', 'lower', 'upper']
    >>> towns, regions = release["town"].to_pandas(), release["region"].to_pandas()
    >>> bool(towns["count"].sum() == regions["count"].sum())
    True
    >>> release.verify().holds
    True
    """

    def __new__(cls, path: str | Path) -> Self:
        """An instance of the class of its kind."""
        folder = RunFolder(Path(path))
        if not folder.is_finished:
            raise RunFolderError(f"{path} holds no finished release.")
        chosen: Any = cls if cls is not Release else _CLASSES.get(folder.plan().kind, Release)
        return super().__new__(chosen)

    def __init__(self, path: str | Path) -> None:
        self._folder = RunFolder(Path(path))
        self.path = self._folder.path
        self.plan: Plan = self._folder.plan()

    # -- tables ---------------------------------------------------------------------------------

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels that have tables, root first."""
        return self.plan.levels

    @property
    def areas(self) -> tuple[str, ...]:
        """Categories of areas of interest that have tables too."""
        return tuple(area.name for area in self.plan.interests)

    def __getitem__(self, level: str) -> Table:
        """The table of a level, or of a category of areas of interest."""
        return Table(self.table(level))

    def __iter__(self) -> Iterator[str]:
        return iter((*self.levels, *self.areas))

    def __contains__(self, level: object) -> bool:
        return level in (*self.levels, *self.areas)

    def table(self, level: str) -> pa.Table:
        """Columns geocode, level, attributes, count, std_error, lower, upper.

        For flows: origin, destination, attributes, count, std_error, lower, upper. `level` may also
        be a category of areas of interest.
        """
        if level in self.areas:
            return read_table(self._folder.release / "areas" / f"{level}.parquet")
        self._require(level)
        return read_table(self._folder.release / f"{level}.parquet")

    def _require(self, level: str) -> None:
        if level not in self.levels:
            raise RunFolderError(
                f"This release has no level {level!r}; it has {', '.join(self.levels)}."
            )

    # -- what it promises -----------------------------------------------------------------------

    @property
    def privacy(self) -> Guarantee:
        """The cost: `privacy.rho`, `privacy.epsilon(delta)`."""
        return self.plan.privacy

    @property
    def guarantee(self) -> list[str]:
        """What is protected, how well, what is not, and what must be true for it to hold."""
        return guarantee_in_words(self.plan)

    def account(self, delta: Number | Sequence[Number] | None = None) -> PrivacyStatement:
        """The exact epsilon at one delta or several, who is protected, and what attacks can do.

        >>> release = spec.run()
        >>> release.account().picture().save("privacy.svg").name
        'privacy.svg'
        """
        return PrivacyStatement.at(self.plan, delta)

    @property
    def loose_fit(self) -> float | None:
        """How far a family may be from its best fit, if that is more than usual."""
        return None

    def verify(
        self, ledger: str | Path | None = None, hierarchy: str | Path | None = None
    ) -> Verification:
        """Check every promise independently.

        With the ledger that paid, measurements and cost are compared with it; with the office's own
        file of areas, the tree.
        """
        return Verification.of(self.path, ledger, hierarchy)

    # -- what can be made of it -----------------------------------------------------------------

    def estimate(
        self,
        method: str,
        out: str | Path,
        *,
        penalty: int | float | str | Fraction | None = None,
        progress: Progress | None = None,
    ) -> Release:
        """The same measurements estimated by another method, into another folder."""
        price = asked_penalty(method, out, penalty)
        target = reestimate(self._folder, method, Path(out), progress or Silent(), price)
        return Release(target.path)

    def report(self) -> Path:
        """The page about this release, made again."""
        return remake_report(self._folder)

    def __repr__(self) -> str:
        return f"Release({self.plan.release!r}, levels {', '.join(self.levels)})"

    def _repr_html_(self) -> str:
        return list_block(repr(self), self.guarantee)


class HistogramsRelease(Release):
    """A release of histograms: tables by level and query, measurements, and microdata."""

    def __getitem__(self, level: str | tuple[str, str]) -> Table:
        """The table of a level that has one, or of `level, query`."""
        return Table(self.table(*((level,) if isinstance(level, str) else level)))

    def table(self, level: str, query: str | None = None) -> pa.Table:
        """One table for each level and query; the query may be left out where there is one."""
        self._require(level)
        return read_table(self._folder.release / level / f"{self._query(level, query)}.parquet")

    def queries(self, level: str) -> list[str]:
        """The queries that have a table on a level."""
        return [query for of, query in self._design.tables if of == level]

    def measurement(self, level: str, query: str) -> pa.Table:
        """What was measured: geocode, cells, value, variance."""
        self._require(level)
        there = [q.query for q in self.plan.queries if q.level == level]
        planned = self.plan.query(level, self._name(query, there))
        if planned is None:
            raise RunFolderError(
                f"Level {level!r} has measurements of {', '.join(there) or 'nothing'}."
            )
        return load_measurement(self._folder.measurements, planned)

    def microdata(self) -> pa.Table:
        """One row per record, made from the published counts."""
        if not self._design.microdata:
            raise RunFolderError(
                "This release has no microdata. Ask for them with output.microdata: true."
            )
        return read_table(self._folder.release / "microdata.parquet")

    @property
    def loose_fit(self) -> float | None:
        """How far a family may be from its best fit, if that is more than usual."""
        distance = read_distance(self._folder.estimates)
        return distance if distance > FIT_TOLERANCE else None

    @property
    def _design(self) -> HistogramDesign:
        return self.plan.design_as(HistogramDesign)

    def _query(self, level: str, query: str | None) -> str:
        there = self.queries(level)
        if query is None and len(there) == 1:
            return table_name(there[0])
        if query is None or (name := self._name(query, there)) not in there:
            raise RunFolderError(f"Level {level!r} has tables of {', '.join(there) or 'nothing'}.")
        return table_name(name)

    def _name(self, query: str, there: Sequence[str]) -> str:
        """A query as the plan calls it; older plans took the attributes in the order given."""
        given = parse_query(self.plan.schema, query).name
        return given if given in there else named_query(self.plan.schema, query).name


class GroupSizesRelease(Release):
    """A release of group sizes: tables of groups by size, and statistics of sizes."""

    def statistics(self, level: str) -> pa.Table:
        """Statistics of group sizes: geocode, level, statistic, value, lower, upper."""
        self._require(level)
        return read_table(self._folder.release / "statistics" / f"{level}.parquet")


class FlowsRelease(Release):
    """A release of flows: tables of trips between areas, and sums between any levels."""

    def flows(
        self,
        origin_level: str,
        destination_level: str,
        *,
        origins: Sequence[str] | None = None,
        destinations: Sequence[str] | None = None,
    ) -> pa.Table:
        """Flows between any two levels, or some of their areas: origin, destination, count."""
        tree = FlowFacts.read(self._folder, self.plan).tree(self.plan)
        leaves = read_flow_level(self._folder.estimates, self.levels[tree.shape.leaf_pairs])
        return flows_between(
            tree, leaves, (origin_level, destination_level), (origins, destinations)
        )


_CLASSES: dict[str, type[Release]] = {
    "histograms": HistogramsRelease, "group_sizes": GroupSizesRelease, "flows": FlowsRelease
}  # fmt: skip
"""Kinds that publish more than a table for each level."""


class Verification(Sequence[Finding]):
    """The findings for every promise; true if all of them hold."""

    def __init__(self, findings: Sequence[Finding], notice: str = "") -> None:
        self._findings = list(findings)
        self.notice = notice
        """The notice of a withdrawn release; empty for others."""

    @classmethod
    def of(
        cls,
        path: str | Path,
        ledger: str | Path | None = None,
        hierarchy: str | Path | None = None,
    ) -> Verification:
        """Read a run folder, the ledger that paid and the office's areas, if they are named."""
        return cls(verify_run(path, ledger, hierarchy), notice(Path(path)))

    def __getitem__(self, index: Any) -> Any:
        return self._findings[index]

    def __len__(self) -> int:
        return len(self._findings)

    def __bool__(self) -> bool:
        return self.holds

    @property
    def holds(self) -> bool:
        """Whether every promise holds."""
        return all(finding.holds for finding in self._findings)

    def to_json(self) -> dict[str, Any]:
        """What `trellis verify --json` prints."""
        return as_data(self._findings, self.notice)

    @property
    def notes(self) -> list[str]:
        """What was checked on a sample only, or not at all."""
        return [note for finding in self._findings for note in finding.notes]

    @property
    def problems(self) -> list[str]:
        """What is wrong, a line for each problem."""
        return [problem for finding in self._findings for problem in finding.problems]

    def __repr__(self) -> str:
        broken = [finding.check for finding in self._findings if not finding.holds]
        said = f"{', '.join(broken)} do not hold" if broken else f"all {len(self)} promises hold"
        return f"Verification({said})"

    def _repr_html_(self) -> str:
        lines = [f"{f.promise} {'holds' if f.holds else '; '.join(f.problems)}" for f in self]
        return list_block(repr(self), lines)
