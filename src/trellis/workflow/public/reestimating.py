"""The same measurements estimated by another method, into a folder of their own."""

from __future__ import annotations

import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from trellis.errors import RunFolderError, TrellisError
from trellis.model.plans.plan import Plan
from trellis.spec.reading.older import modern
from trellis.spec.reading.yaml_reader import read_yaml
from trellis.spec.sections.values import to_fraction
from trellis.storage.atomic import new_folder
from trellis.verify.files.inventory import refuse_strange
from trellis.workflow.kinds import public_kind
from trellis.workflow.progress import Progress
from trellis.workflow.public.finishing import finish, measured_run, require_measured
from trellis.workflow.public.run_folder import RunFolder, spec_hash


def reestimate(
    folder: RunFolder,
    method: str,
    out: Path,
    progress: Progress,
    penalty: Fraction | None = None,
) -> RunFolder:
    """Estimate again; `penalty` is that of sparse flows. It costs nothing."""
    require_measured(folder)
    refuse_strange(folder.path)
    plan = folder.plan()
    if method not in (known := plan.design.fitting(plan)):
        raise RunFolderError(
            f"Method {method!r} is not available here; use one of {', '.join(known)}.{_why(plan)}"
        )
    target = RunFolder(out)
    with target.held():
        _reestimate(folder, method, penalty, target, progress)
    return target


def asked_penalty(method: str | None, out: Any, penalty: Any) -> Fraction | None:
    """The penalty that was asked for; refuses what does not go together."""
    if (method is None) != (out is None):
        raise RunFolderError("--method and --out go together: name a new folder for the result.")
    if penalty is not None and method is None:
        raise RunFolderError("--penalty goes with --method sparse or gls_sparse.")
    try:
        return None if penalty is None else to_fraction(penalty)
    except ValueError as error:
        raise RunFolderError(f"--penalty: {error}.") from None


def _why(plan: Plan) -> str:
    if len(plan.design.fitting(plan)) == len(plan.design.methods):
        return ""
    return f" Others do not fit what was measured: {plan.design.why_few(plan)}."


def left_out(folder: RunFolder, method: str) -> list[str]:
    """Keys of a run's spec that another method cannot keep, and does without."""
    plan = folder.plan()
    return public_kind(plan.kind).left_out(_spec(folder), plan, method)


def _spec(folder: RunFolder) -> dict[str, Any]:
    """The spec of a run as it is written now."""
    return modern(read_yaml(folder.spec))[0]


def _reestimate(
    folder: RunFolder,
    method: str,
    penalty: Fraction | None,
    target: RunFolder,
    progress: Progress,
) -> None:
    if target.is_started:
        raise RunFolderError(f"{target.path} holds a run already. Choose another folder.")
    run = measured_run(folder)
    kind = public_kind(run.plan.kind)
    spec, plan = kind.with_method(_spec(folder), run, method, penalty)
    identity = replace(run.identity, spec_sha256=spec_hash(spec))
    target.start(identity, spec, plan, kind.facts(folder, plan))
    try:
        with new_folder(target.measurements) as partial:
            # A link, should one have come in since the folder was looked at, stays a link.
            shutil.copytree(folder.measurements, partial, symlinks=True, dirs_exist_ok=True)
        finish(target, progress)
    except TrellisError:  # such as a method that does not fit what was measured
        shutil.rmtree(target.path)
        raise
