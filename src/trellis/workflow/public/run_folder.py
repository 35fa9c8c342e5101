"""A run folder: the public record of one release. Everything in it may be published.

    spec.yaml  run.json  plan.json  hierarchy.parquet      made first, in one step
    destinations.parquet                                   of flows, where they differ
    spine.parquet  areas.parquet                           with them, where the spec has them
    measurements/                                          noise has been spent
    estimates/  release/  report/                          made from the measurements alone
    privacy.json  deployment.yaml  manifest.json           the manifest comes last: finished
    withdrawn.json                                         later, if it is withdrawn

A stage that is there is complete: its folder appears under its name only when all is written.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import yaml

from trellis.errors import RunFolderError, SpecError
from trellis.model.plans.plan import Plan
from trellis.model.trees.hierarchy import Hierarchy
from trellis.privacy.protection import NOT_KNOWN
from trellis.spec import Spec
from trellis.spec.reading.yaml_reader import read_yaml
from trellis.storage.atomic import new_folder, read_json, remove_partials, write_json
from trellis.storage.folder_lock import held
from trellis.storage.formats import FORMAT, without_format
from trellis.storage.hierarchies import read_hierarchy
from trellis.storage.plans import plan_to_json, read_plan

if TYPE_CHECKING:
    from trellis.workflow.public.facts import PublicFacts


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """Which run this is. The seed breaks ties of rounding; it is public and made no noise."""

    run_id: str
    ledger_id: str
    tie_seed: int
    spec_sha256: str
    csv: bool | None

    @classmethod
    def new(cls, public_spec: Mapping[str, Any], ledger_id: str) -> Self:
        return cls(
            run_id=secrets.token_hex(16),
            ledger_id=ledger_id,
            tie_seed=secrets.randbits(63),
            spec_sha256=spec_hash(public_spec),
            csv=public_spec.get("output", {}).get("csv"),
        )


def spec_hash(public_spec: Mapping[str, Any]) -> str:
    return sha256(json.dumps(public_spec, sort_keys=True).encode()).hexdigest()


class RunFolder:
    """Paths and state of one run."""

    def __init__(self, path: Path) -> None:
        if path.name in ("", ".."):  # a folder is made under another name first, so it needs one
            path = Path(os.path.realpath(path))
        if any(len(os.fsencode(part)) > 255 for part in path.parts):
            raise RunFolderError(f"{path} is too long a name for a folder. Choose another one.")
        self.path = path
        self.spec = path / "spec.yaml"
        self.identity_file = path / "run.json"
        self.plan_file = path / "plan.json"
        self.hierarchy_file = path / "hierarchy.parquet"
        self.destinations_file = path / "destinations.parquet"
        self.spine_file = path / "spine.parquet"
        self.areas_file = path / "areas.parquet"
        self.measurements = path / "measurements"
        self.estimates = path / "estimates"
        self.release = path / "release"
        self.report = path / "report"
        self.privacy = path / "privacy.json"
        self.deployment = path / "deployment.yaml"
        self.manifest = path / "manifest.json"
        self.withdrawn = path / "withdrawn.json"

    # -- state ----------------------------------------------------------------------------------

    @property
    def is_started(self) -> bool:
        """Whether a run lives here; a folder that holds anything else is refused."""
        if self.identity_file.exists():
            return True
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise RunFolderError(
                f"{self.path} exists and is not a run folder. Choose another with --out."
            )
        return False

    @property
    def is_measured(self) -> bool:
        return self.measurements.is_dir()

    @property
    def is_finished(self) -> bool:
        return self.manifest.exists()

    def require_started(self) -> None:
        if not self.path.is_dir() or not self.is_started:
            raise RunFolderError(f"{self.path} is not a run folder: it has no run.json.")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let no other process work on this run; one that is finished is only read."""
        if self.is_started and self.is_finished:
            yield
        else:
            with held(self.path):
                yield

    # -- beginning ------------------------------------------------------------------------------

    def start(
        self,
        identity: RunIdentity,
        public_spec: Mapping[str, Any],
        plan: Plan,
        facts: PublicFacts,
    ) -> None:
        """Make the folder with all that is known before measuring."""
        remove_partials(self.path)
        with new_folder(self.path) as partial:
            inside = RunFolder(partial)
            text = yaml.safe_dump(dict(public_spec), sort_keys=False, allow_unicode=True)
            inside.spec.write_text(text, encoding="utf-8")
            write_json(inside.identity_file, {"format": FORMAT, **asdict(identity)})
            write_json(inside.plan_file, plan_to_json(plan))
            facts.write(inside)

    # -- reading --------------------------------------------------------------------------------

    def identity(self) -> RunIdentity:
        content = read_json(self.identity_file)
        try:
            return RunIdentity(**without_format(content, self.identity_file))
        except (AttributeError, TypeError):
            raise RunFolderError(f"{self.identity_file} is damaged.") from None

    def plan(self) -> Plan:
        """The plan. What an older one does not say, its spec does: what the records must keep."""
        plan = read_plan(self.plan_file)
        if plan.protection.required != (NOT_KNOWN,):
            return plan
        with suppress(SpecError):
            required = self.public_spec().required_of_records
            return replace(plan, protection=replace(plan.protection, required=required))
        return plan

    def hierarchy(self) -> Hierarchy:
        return read_hierarchy(self.hierarchy_file)

    def public_spec(self) -> Spec:
        """The spec, without places; that of an older run as it is written now."""
        return Spec.parse(read_yaml(self.spec), self.path)

    def is_of(self, spec: Spec) -> bool:
        """Whether the run was begun with this spec, perhaps in an older spelling."""
        if self.identity().spec_sha256 == spec_hash(spec.public()):
            return True
        with suppress(SpecError):
            return self.public_spec().public() == spec.public()
        return False

    def files(self) -> Iterator[Path]:
        """All files but the manifest itself; hidden leftovers do not count."""
        for path in self.path.rglob("*"):
            hidden = any(part.startswith(".") for part in path.relative_to(self.path).parts)
            if path.is_file() and path != self.manifest and not hidden:
                yield path
