"""A plan as a user holds it: look ahead, compare, then measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pydantic import ValidationError

from trellis.api.inputs import Number
from trellis.api.pages import list_block, rows_block
from trellis.api.specs import Spec
from trellis.api.tables import Table
from trellis.errors import SpecError
from trellis.model.plans.plan import Plan as ModelPlan
from trellis.model.plans.statement import guarantee_in_words
from trellis.privacy.guarantee import Guarantee
from trellis.spec.sections.planning import PriorSpec
from trellis.storage.plans import plan_to_json
from trellis.workflow.preparing.prepare import prepare, with_forecast
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.progress import Progress, Silent

if TYPE_CHECKING:  # loaded when they are needed
    from trellis.api.pictures import Picture, Pictures
    from trellis.api.runs import Run
    from trellis.api.statements import PrivacyStatement
    from trellis.planning.spine.search import Candidate
    from trellis.workflow.outlook.plan_report import PlanReport
    from trellis.workflow.outlook.simulation import Simulation


class Plan:
    """What will be measured, with which noise, and what it will cost; made without counts.

    `spec.plan()` makes one. All attributes of the plan that the stages pass on are here too:
    `levels`, `queries`, `budget`, `method` and others.

    >>> plan = spec.plan()
    >>> plan.levels
    ('country', 'region', 'town')
    >>> plan.privacy.rho
    Fraction(1, 2)
    >>> plan.errors.columns
    ['level', 'query', 'areas', 'least', 'median', 'most']
    >>> release = plan.measure().estimate()
    """

    def __init__(self, spec: Spec, prepared: Prepared) -> None:
        self.spec = spec
        self._prepared = prepared

    @classmethod
    def of(cls, spec: Spec, progress: Progress | None = None) -> Plan:
        """The plan of a spec; `spec.plan()` is the usual way."""
        with (progress or Silent()).stage("plan", line=False):
            return cls(spec, with_forecast(prepare(spec, spec.frames)))

    @classmethod
    def checked(
        cls, spec: Spec, new_edition: bool, same_records: bool, progress: Progress | None
    ) -> Plan:
        """The plan of a spec whose inputs have been checked; `spec.check()` is the usual way."""
        from trellis.workflow.confidential.check import check
        from trellis.workflow.confidential.measuring import Confirmed

        confirmed = Confirmed(new_edition, same_records)
        return cls(spec, check(spec, spec.frames, confirmed, progress))

    @property
    def model(self) -> ModelPlan:
        """The plan as the stages pass it on."""
        return self._prepared.plan

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.model, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(n for n in dir(self.model) if not n.startswith("_"))})

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Plan | ModelPlan):
            return self.model == (other.model if isinstance(other, Plan) else other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self.model.release, self.model.dataset))

    # -- what to expect -------------------------------------------------------------------------

    @property
    def privacy(self) -> Guarantee:
        """The cost: `privacy.rho`, `privacy.epsilon(delta)`."""
        return self.model.privacy

    @property
    def guarantee(self) -> list[str]:
        """What is protected, how well, what is not, and what must be true for it to hold."""
        return guarantee_in_words(self.model)

    @property
    def errors(self) -> Table:
        """Expected standard errors by level; empty where the method has none beforehand."""
        lines = self._report().errors
        if lines:
            rows = [
                {
                    "level": line.level, "query": line.query, "areas": line.areas,
                    "least": line.least, "median": line.median, "most": line.most,
                }
                for line in lines
            ]  # fmt: skip
        else:
            rows = [asdict(error) for error in self.model.forecast.errors or ()]
        return Table(pa.Table.from_pylist(rows))

    @property
    def area_errors(self) -> Table:
        """Distance and expected standard error of every area of interest, before and after a spine.

        >>> places = pa.table({"town": ["ash", "elm", "oak"], "place": ["park", None, "park"]})
        >>> listed = {"place": {"area": "town", "entity": "place"}}
        >>> near = spec.model_copy(update={"areas": listed}).with_frames(areas={"place": places})
        >>> near.plan().area_errors.to_csv("areas.csv").name
        'areas.csv'
        """
        from trellis.workflow.outlook.area_errors import area_errors

        return Table(area_errors(self._prepared))

    def compare(self, *strategies: str) -> Table:
        """How other splits of the same budget would do, such as `"uniform"` and `"optimal"`.

        >>> spec.plan().compare("optimal").columns
        ['strategy', 'expected_squared_error']
        """
        rows = [
            {"strategy": line.name, "expected_squared_error": line.squared_error}
            for line in self._report(compare=strategies).comparison
        ]
        return Table(pa.Table.from_pylist(rows))

    def simulate(
        self, releases: int, prior: str | Path | Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> Simulation | None:  # fmt: skip
        """Simulate releases, with public counts as the truth; nothing is spent.

        `prior` is a file, or the keys of a prior in a spec: `{"source": "old.csv", "count": "n"}`.
        """
        return self.report(releases=releases, prior=prior, progress=progress).simulation

    def suggest(self) -> list[Candidate]:
        """Settings of a spine for the areas of interest, best first."""
        from trellis.workflow.outlook.suggest import suggest

        return suggest(self.spec, self.spec.frames)

    def account(self, delta: Number | Sequence[Number] | None = None) -> PrivacyStatement:
        """The exact epsilon at one delta or several, who is protected, and what attacks can do."""
        from trellis.api.statements import PrivacyStatement

        return PrivacyStatement.at(self.model, delta)

    def report(
        self,
        *,
        compare: Sequence[str] = (),
        releases: int | None = None,
        prior: str | Path | Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> PlanReport:
        """All that `trellis plan` shows: errors, targets, comparison, simulation, warnings.

        Its `to_json()` is what `trellis plan --json` prints.

        >>> spec.plan().report(compare=["uniform"]).to_json()["comparison"][1]["strategy"]
        'uniform'
        """
        return self._report(
            compare=compare, releases=releases, prior=_prior(prior), progress=progress
        )

    def _report(self, **options: Any) -> PlanReport:
        from trellis.workflow.outlook.plan_report import plan_report

        return plan_report(self.spec, self.spec.frames, **options)

    # -- pictures -------------------------------------------------------------------------------

    def pictures(self, *strategies: str) -> Pictures:
        """Shares by level, also of other strategies, and errors against the budget.

        >>> spec.plan().pictures()
        Pictures(shares.svg, error-by-budget.svg)
        """
        from trellis.api.pictures import Pictures
        from trellis.workflow.outlook.pictures import plan_pictures

        return Pictures(plan_pictures(self._report(compare=strategies)))

    def picture(self) -> Picture:
        """What a spine does to the errors of areas of interest and of levels."""
        from trellis.api.pictures import Picture
        from trellis.workflow.outlook.pictures import spine_picture

        return Picture(spine_picture(self.model))

    # -- what comes next ------------------------------------------------------------------------

    def measure(
        self, out: str | Path | None = None, *, new_edition: bool = False,
        same_records: bool = False, progress: Progress | None = None,
    ) -> Run:  # fmt: skip
        """Charge the ledger, draw noise once, and write measurements: a `Run`.

        `new_edition` confirms that the records have changed, `same_records` that the same records
        are in the ledger under another data set name. Public files that have changed since the
        plan was made are refused.
        """
        from trellis.api.runs import Run

        return Run.measured(
            self.spec, out, planned=self.model, new_edition=new_edition, same_records=same_records,
            progress=progress,
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """The plan as in `plan.json`."""
        return plan_to_json(self.model)

    def __repr__(self) -> str:
        levels = ", ".join(self.model.levels)
        return f"Plan({self.model.release!r}, {self.model.kind}, levels {levels})"

    def _repr_html_(self) -> str:
        plan = self.model
        rows = [
            (q.level, q.query, str(q.share), None if q.noise is None else q.variance**0.5)
            for q in plan.queries
        ]
        table = rows_block(["level", "query", "share", "noise sd"], rows)
        return table + list_block(plan.release, self.guarantee)


def _prior(prior: str | Path | Mapping[str, Any] | None) -> PriorSpec | None:
    """A file, from the current folder, or the keys of a prior in a spec, from that of the spec."""
    if prior is None:
        return None
    keys = prior if isinstance(prior, Mapping) else {"source": str(Path(prior).absolute())}
    try:
        return PriorSpec(**keys)
    except ValidationError:
        allowed = ", ".join(PriorSpec.model_fields)
        raise SpecError(f"--prior: give a file, or keys as in a spec: {allowed}.") from None
