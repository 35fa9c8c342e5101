"""The steps of a release as functions of a spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trellis.api.inputs import Number
from trellis.api.plans import Plan
from trellis.api.releases import Release, Verification
from trellis.api.runs import Run
from trellis.api.specs import Spec
from trellis.api.statements import PrivacyStatement
from trellis.errors import PrivacyError
from trellis.model.plans.plan import Plan as ModelPlan
from trellis.privacy import Accountant
from trellis.privacy.guarantee import GuaranteeCurve
from trellis.spec import Spec as SpecOfAnyKind
from trellis.workflow.preparing.prepare import prepare
from trellis.workflow.progress import Progress


def plan(
    spec: SpecOfAnyKind,
    *,
    hierarchy: Any = None,
    areas: Mapping[str, Any] | None = None,
    destinations: Any = None,
) -> Plan:
    """The plan with its guarantee and the expected errors; no counts are touched.

    >>> tr.plan(spec).levels
    ('country', 'region', 'town')
    """
    bound = Spec.of(spec).with_frames(hierarchy=hierarchy, areas=areas, destinations=destinations)
    return bound.plan()


def check(
    spec: SpecOfAnyKind,
    *,
    data: Any = None,
    hierarchy: Any = None,
    register: Any = None,
    areas: Mapping[str, Any] | None = None,
    destinations: Any = None,
    new_edition: bool = False,
    same_records: bool = False,
    progress: Progress | None = None,
) -> Plan:
    """Read and validate all that a run reads; nothing is spent.

    >>> tr.check(spec).budget.rho
    Fraction(1, 2)
    """
    bound = Spec.of(spec).with_frames(
        records=data, hierarchy=hierarchy, register=register, areas=areas, destinations=destinations
    )
    return bound.check(new_edition=new_edition, same_records=same_records, progress=progress)


def run(
    spec: SpecOfAnyKind,
    out: str | Path | None = None,
    *,
    data: Any = None,
    hierarchy: Any = None,
    register: Any = None,
    areas: Mapping[str, Any] | None = None,
    destinations: Any = None,
    new_edition: bool = False,
    same_records: bool = False,
    progress: Progress | None = None,
) -> Release:
    """A complete release. Started again, it resumes after the last finished stage.

    `data`, `hierarchy`, `register` (of groups) and `destinations` (of flows) take Arrow, Polars or
    pandas frames in place of the spec's files, `areas` a mapping of frames by category.
    `new_edition` confirms that the records have changed, `same_records` that the same records are
    in the ledger under another data set name.

    >>> tr.run(spec, out="runs/first").levels
    ('country', 'region', 'town')
    """
    bound = Spec.of(spec).with_frames(
        records=data, hierarchy=hierarchy, register=register, areas=areas, destinations=destinations
    )
    return bound.run(out, new_edition=new_edition, same_records=same_records, progress=progress)


def account(
    target: SpecOfAnyKind | Plan | Run | Release | Accountant | ModelPlan | str | Path,
    delta: Number | Sequence[Number] | None = None,
) -> PrivacyStatement:
    """State the exact guarantee of a release, before or after it is made, or of mechanisms.

    `target` is a spec, a plan, a run, a release, an accountant, or the path of a spec, of a
    `plan.json` or of a run folder.

    >>> release = spec.run()
    >>> tr.account("runs/towns/plan.json").to_json() == release.account().to_json()
    True
    >>> from trellis.privacy import DiscreteGaussian
    >>> ten = tr.Accountant("add_remove", max_contribution=1).add(DiscreteGaussian(5), count=10)
    >>> tr.account(ten, delta=1e-10).picture().save("curve.svg").name
    'curve.svg'
    """
    return PrivacyStatement.at(_stated(target), delta)


def _stated(target: Any) -> ModelPlan | Accountant | GuaranteeCurve:
    if isinstance(target, ModelPlan | Accountant | GuaranteeCurve):
        return target
    if isinstance(target, SpecOfAnyKind):
        bound = Spec.of(target)
        return prepare(bound, bound.frames).plan
    if isinstance(target, Plan):
        return target.model
    if isinstance(target, Run | Release):
        return target.plan
    if isinstance(target, str | Path):
        from trellis.workflow.outlook.plan_at import plan_at

        return plan_at(Path(target))
    raise PrivacyError("Name a spec, plan or run folder, or give an accountant.")


def verify_run(
    path: str | Path, ledger: str | Path | None = None, hierarchy: str | Path | None = None
) -> Verification:
    """Check every promise of a run folder independently, even of one from a stranger.

    With the ledger that paid, measurements and cost are compared with it; with the office's own
    file of areas, the tree. The result is true if all promises hold, and has the notice of a
    release that was withdrawn.

    >>> release = spec.run()
    >>> bool(tr.verify_run(release.path, "ledger.sqlite"))
    True
    """
    return Verification.of(path, ledger, hierarchy)
