"""The promises about the folder as a whole. Each check yields what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from json import dumps

import pyarrow as pa

from trellis.verify.files.parquet_forms import has_nothing_between
from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import digest, empty_folders


def inventory(run: RunFiles) -> Iterator[str]:
    """The folder holds what a run of its kind holds: no other file, column or metadata."""
    for problems in run.strange.values():
        yield from problems
    for name in empty_folders(run.path):
        yield f"{name} is a folder without files"
    yield from _between(run)


def _between(run: RunFiles) -> Iterator[str]:
    """Bytes of Parquet files that belong to no value; other versions of Arrow write others."""
    if run.manifest["packages"]["pyarrow"] != pa.__version__:
        run.notes.append("bytes between values were not looked for: another Arrow wrote the files")
        return
    for name, size in sorted(run.sizes.items()):
        is_read = name.endswith(".parquet") and name not in run.strange
        if is_read and not has_nothing_between(run.path / name, size):
            yield f"{name} has bytes that belong to no value"


def hashes(run: RunFiles) -> Iterator[str]:
    """Every file is the one that the manifest lists, and no other is there."""
    listed = run.manifest["sha256"]
    there = set(run.sizes) - {"manifest.json"}
    for name in sorted(set(listed) - there):
        yield f"{name} is missing"
    for name in sorted(there - set(listed)):
        yield f"{name} is not in the manifest"
    for name in sorted(there & set(listed)):
        if digest(run.path / name) != listed[name]:
            yield f"{name} has changed since it was released"


def identity(run: RunFiles) -> Iterator[str]:
    """All files speak of the same run of the same spec."""
    canonical = dumps(run.spec, sort_keys=True).encode()
    if sha256(canonical).hexdigest() != run.identity["spec_sha256"]:
        yield "spec.yaml is not the spec of run.json"
    if run.manifest["run_id"] != run.identity["run_id"]:
        yield "manifest.json and run.json name different runs"
    if not _formats_agree(run):
        yield "plan.json, run.json and privacy.json have different formats"
    stated = {
        "release": run.spec["release"],
        "kind": run.spec["kind"],
        "dataset": run.spec["dataset"],
        "method": _stated_method(run),
        "confidence": run.spec["output"]["confidence"],
        "budget": _stated_budget(run),
    }
    for key, value in stated.items():
        if run.plan[key] != value:
            yield f"plan.json and spec.yaml differ in {key}"
    if "histogram" in run.plan and run.plan["histogram"]["passes"] != _stated_passes(run):
        yield "plan.json and spec.yaml differ in passes"


def _formats_agree(run: RunFiles) -> bool:
    """Plan and identity are written together; a newer version may finish an older run."""
    plan, identity, record = (
        content.get("format", 1) for content in (run.plan, run.identity, run.privacy)
    )
    return plan == identity and record >= plan


def _stated_passes(run: RunFiles) -> list[str]:
    names = run.spec["estimate"].get("passes", [])
    return [" * ".join(part.strip() for part in name.split("*")) for name in names]


def _stated_budget(run: RunFiles) -> dict[str, str]:
    """The budget of the spec; where its targets decide, what the plan made of them."""
    stated = run.spec["privacy"].get("budget", {})
    return run.plan["budget"] if set(stated) <= {"delta"} and run.spec.get("accuracy") else stated


def _stated_method(run: RunFiles) -> str:
    """The key had other names before."""
    for key in ("estimator", "mechanism"):
        if key in run.spec:
            return run.spec[key]
    return run.spec["estimate"]["method"]
