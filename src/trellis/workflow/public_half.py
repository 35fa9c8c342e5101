"""Everything after measuring, from the run folder alone: estimate, release, list.

This module cannot import true counts; a contract of the import linter proves it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa
import yaml

from trellis.errors import RunFolderError, TrellisError
from trellis.estimate.evidence import empty_nodes
from trellis.estimate.group_sizes.estimator import group_numbers
from trellis.estimate.methods import estimate, methods_for
from trellis.estimate.spine import carry_back, estimate_areas
from trellis.evaluate.public_run import PublicRun
from trellis.evaluate.report import report_page
from trellis.model.area_estimates import AreaEstimates
from trellis.model.estimates import Estimates
from trellis.model.exact_totals import ExactTotals, category_range, level_range, settled
from trellis.model.flows import FLOWS
from trellis.model.hierarchy import Hierarchy
from trellis.model.histogram_estimates import FIT_TOLERANCE, HistogramEstimates
from trellis.model.measurements import Measurements
from trellis.model.plan import Plan
from trellis.model.queries import named_query, parse_query
from trellis.model.size_mechanisms import GROUP_SIZES
from trellis.numerics.trees.area_errors import AreaErrors
from trellis.planning.expected_error import with_expected_errors
from trellis.release.area_tables import write_area_tables
from trellis.release.data_package import write_data_package
from trellis.release.deployment_record import deployment_yaml
from trellis.release.flow_ranges import flows_between
from trellis.release.histogram_tables import table_name
from trellis.release.manifest import manifest
from trellis.release.privacy_record import privacy_record
from trellis.release.reading_guide import reading_guide
from trellis.release.size_tables import size_guide, write_statistics
from trellis.release.tables import write_tables
from trellis.storage.atomic import new_folder, read_json, remove_partials, write_json, write_text
from trellis.storage.estimates import (
    read_area_estimates,
    read_estimates,
    write_area_estimates,
    write_estimates,
)
from trellis.storage.flows import read_flow_level
from trellis.storage.histogram_estimates import read_distance
from trellis.storage.histograms import load_measurement
from trellis.storage.measurements import read_measurements
from trellis.storage.parquet import read_table
from trellis.verify.inventory import refuse_strange
from trellis.workflow.flow_release import (
    with_estimator,
    write_flow_estimates,
    write_flow_release,
)
from trellis.workflow.flow_tree import flow_tree
from trellis.workflow.interests import Interests
from trellis.workflow.privacy_answers import find_privacy_answers
from trellis.workflow.progress import Progress
from trellis.workflow.public_histograms import (
    estimate_into,
    kept_constraints,
    kept_estimates,
    stated_rules,
    without_rules,
    write_histogram_release,
)
from trellis.workflow.run_folder import RunFolder, RunIdentity, spec_hash


class Release:
    """A finished run: tables by level, and the plan with its guarantee."""

    def __init__(self, path: str | Path) -> None:
        folder = RunFolder(Path(path))
        if not folder.is_finished:
            raise RunFolderError(f"{path} holds no finished release.")
        self.path = folder.path
        self.plan: Plan = folder.plan()
        self._tables = folder.release

    def table(self, level: str, query: str | None = None) -> pa.Table:
        """Columns geocode, level, attributes, count, std_error, lower, upper.

        Of flows: origin, destination, attributes, count, std_error, lower, upper. `level` may also
        be a category of areas of interest. A release of histograms has one table for each level
        and query.
        """
        if level in (area.name for area in self.plan.interests):
            return read_table(self._tables / "areas" / f"{level}.parquet")
        self._require(level)
        if self.plan.histogram is not None:
            return read_table(self._tables / level / f"{self._query(level, query)}.parquet")
        return read_table(self._tables / f"{level}.parquet")

    def measurement(self, level: str, query: str) -> pa.Table:
        """What was measured: geocode, cells, value, variance. For releases of histograms."""
        self._require(level)
        if self.plan.histogram is None:
            raise RunFolderError("Only a release of histograms has measurements by query.")
        there = [q.query for q in self.plan.queries if q.level == level]
        planned = self.plan.query(level, self._name(query, there))
        if planned is None:
            raise RunFolderError(
                f"Of level {level!r} were measured: {', '.join(there) or 'nothing'}."
            )
        return load_measurement(self.path / "measurements", planned)

    @property
    def loose_fit(self) -> float | None:
        """How far a family of histograms may be from its best fit, if that is more than usual."""
        distance = read_distance(self.path / "estimates")
        return distance if distance > FIT_TOLERANCE else None

    def microdata(self) -> pa.Table:
        """One row per record, made from the published counts."""
        if self.plan.histogram is None or not self.plan.histogram.microdata:
            raise RunFolderError("This release has no microdata: output.microdata asks for them.")
        return read_table(self._tables / "microdata.parquet")

    def _query(self, level: str, query: str | None) -> str:
        assert self.plan.histogram is not None
        there = [name for of_level, name in self.plan.histogram.tables if of_level == level]
        if query is None and len(there) == 1:
            return table_name(there[0])
        if query is None or (name := self._name(query, there)) not in there:
            raise RunFolderError(f"Level {level!r} has tables of {', '.join(there) or 'nothing'}.")
        return table_name(name)

    def _name(self, query: str, there: Sequence[str]) -> str:
        """A query as the plan calls it; older plans took the attributes in the order given."""
        given = parse_query(self.plan.schema, query).name
        return given if given in there else named_query(self.plan.schema, query).name

    def statistics(self, level: str) -> pa.Table:
        """Statistics of group sizes: geocode, level, statistic, value, lower, upper."""
        if self.plan.kind != GROUP_SIZES:
            raise RunFolderError("Only a release of group sizes has statistics.")
        self._require(level)
        return read_table(self._tables / "statistics" / f"{level}.parquet")

    def flows(
        self,
        origin_level: str,
        destination_level: str,
        *,
        origins: Sequence[str] | None = None,
        destinations: Sequence[str] | None = None,
    ) -> pa.Table:
        """Flows between any two levels, or some of their areas: origin, destination, count."""
        if self.plan.kind != FLOWS or self.plan.flow is None:
            raise RunFolderError("Only a release of flows has flows between areas.")
        folder = RunFolder(self.path)
        tree = flow_tree(self.plan, folder.hierarchy(), folder.destinations())
        leaves = read_flow_level(folder.estimates, self.plan.levels[self.plan.flow.leaf_pairs])
        levels = (origin_level, destination_level)
        return flows_between(tree, leaves, levels, (origins, destinations))

    def _require(self, level: str) -> None:
        if level not in self.plan.levels:
            raise RunFolderError(
                f"This release has no level {level!r}; it has {', '.join(self.plan.levels)}."
            )

    def __repr__(self) -> str:
        return f"Release({self.plan.release!r}, levels {', '.join(self.plan.levels)})"


def finish(folder: RunFolder, progress: Progress) -> Release:
    """Bring a measured run folder to the state `finished`; what is there is kept."""
    if folder.is_finished:
        return Release(folder.path)
    if not folder.is_measured:
        raise RunFolderError(f"{folder.path} holds no measurements. Run trellis run or measure.")
    refuse_strange(folder.path)
    plan, hierarchy, identity = folder.plan(), folder.hierarchy(), folder.identity()
    find_privacy_answers(plan, progress)  # found already, unless another process measured
    seconds: dict[str, float] = {}
    if plan.kind == FLOWS:
        _finish_flows(folder, plan, hierarchy, identity, seconds, progress)
    else:
        _finish_counts(folder, plan, hierarchy, identity, seconds, progress)
    if not folder.report.is_dir():
        with progress.stage("report"), new_folder(folder.report) as partial:
            page = report_page(PublicRun(folder.path, plan, hierarchy, identity.run_id, _today()))
            (partial / "index.html").write_text(page, encoding="utf-8")
    made = (folder.measurements, folder.estimates, folder.release, folder.report)
    for path in (*made, folder.privacy, folder.deployment, folder.manifest):
        remove_partials(path)
    write_json(folder.privacy, privacy_record(plan))
    write_text(folder.deployment, deployment_yaml(plan, _today(), version("trellis-dp")))
    write_json(
        folder.manifest,
        manifest(folder.path, folder.files(), plan.release, identity.run_id, seconds),
    )
    return Release(folder.path)


def _finish_counts(
    folder: RunFolder,
    plan: Plan,
    hierarchy: Hierarchy,
    identity: RunIdentity,
    seconds: dict[str, float],
    progress: Progress,
) -> None:
    """Estimates and tables that are not there yet."""
    interests = folder.interests(plan)
    if folder.estimates.is_dir():
        estimates = _kept_estimates(folder, plan, hierarchy)
        areas = read_area_estimates(folder.estimates, interests.categories, plan.schema)
    elif plan.histogram is not None:
        areas = []
        with progress.stage("estimate"), _timed(seconds, "estimate"):
            estimates = estimate_into(folder, plan, hierarchy, identity.tie_seed)
    else:
        with progress.stage("estimate"), _timed(seconds, "estimate"):
            measurements = read_measurements(folder.measurements, plan, hierarchy, interests.spine)
            estimates = estimate(measurements, identity.tie_seed)
            estimates, areas = published_estimates(measurements, hierarchy, interests, estimates)
            remove_partials(folder.estimates)
            with new_folder(folder.estimates) as partial:
                write_estimates(partial, estimates)
                write_area_estimates(partial, areas)
    if not folder.release.is_dir():
        with progress.stage("release"), _timed(seconds, "release"):
            _write_release(folder, plan, estimates, areas, identity.csv)


def _finish_flows(
    folder: RunFolder,
    plan: Plan,
    hierarchy: Hierarchy,
    identity: RunIdentity,
    seconds: dict[str, float],
    progress: Progress,
) -> None:
    """The same for flows, whose levels are never held all at once."""
    tree = flow_tree(plan, hierarchy, folder.destinations())
    if not folder.estimates.is_dir():
        with progress.stage("estimate"), _timed(seconds, "estimate"):
            remove_partials(folder.estimates)
            with new_folder(folder.estimates) as partial:
                write_flow_estimates(partial, folder.measurements, plan, tree, identity.tie_seed)
    if not folder.release.is_dir():
        with progress.stage("release"), _timed(seconds, "release"):
            remove_partials(folder.release)
            with new_folder(folder.release) as partial:
                write_flow_release(partial, folder.estimates, plan, tree, identity.csv)


def remake_report(folder: RunFolder) -> Path:
    """Write the report of a finished run again, and its hash into the manifest."""
    folder.require_started()
    if not folder.is_finished:
        raise RunFolderError(f"{folder.path} is not finished. Run the same command again.")
    refuse_strange(folder.path)
    listed = read_json(folder.manifest)
    plan, run_id = folder.plan(), folder.identity().run_id
    path = folder.report / "index.html"
    try:
        date = str(listed["created"])[: len("2000-01-01")]
        page = report_page(PublicRun(folder.path, plan, folder.hierarchy(), run_id, date))
        listed["sha256"][path.relative_to(folder.path).as_posix()] = sha256(
            page.encode()
        ).hexdigest()
    except (KeyError, TypeError):
        raise RunFolderError(f"{folder.manifest} is damaged.") from None
    write_text(path, page)
    write_json(folder.manifest, listed)
    return path


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def reestimate(
    folder: RunFolder,
    method: str,
    out: Path,
    progress: Progress,
    penalty: Fraction | None = None,
) -> Release:
    """Estimate the same measurements by another method, into a folder of its own.

    `penalty` is that of sparse flows.
    """
    folder.require_started()
    if not folder.is_measured:
        raise RunFolderError(f"{folder.path} holds no measurements. Run trellis run or measure.")
    refuse_strange(folder.path)
    if method not in (known := methods_for(folder.plan())):
        why = (
            " Of this run, only what topdown reads was measured (output.measurements: used)."
            if folder.plan().skips_unused
            else ""
        )
        raise RunFolderError(f"No method {method!r}; there are {', '.join(known)}.{why}")
    target = RunFolder(out)
    with target.held():
        return _reestimate(folder, method, penalty, target, progress)


def left_out(folder: RunFolder, method: str) -> list[str]:
    """Keys of a run's spec that another method cannot keep, and does without."""
    plan = replace(folder.plan(), method=method)
    if plan.histogram is None or plan.is_whole:
        return []
    return stated_rules(yaml.safe_load(folder.spec.read_text(encoding="utf-8")))


def _reestimate(
    folder: RunFolder,
    method: str,
    penalty: Fraction | None,
    target: RunFolder,
    progress: Progress,
) -> Release:
    if target.is_started:
        raise RunFolderError(f"{target.path} holds a run already. Choose another folder.")
    hierarchy = folder.hierarchy()
    spec, plan = _with_method(folder, method, penalty)
    if plan.histogram is not None and not plan.is_whole:
        spec, plan = without_rules(spec, plan)
    identity = replace(folder.identity(), spec_sha256=spec_hash(spec))
    if plan.spine is None:
        plan = with_expected_errors(plan, hierarchy)
    else:  # the methods that work on a spine have the same best linear unbiased estimates
        plan = replace(plan, expected_errors=folder.plan().expected_errors)
    others = (
        folder.interests(plan),
        folder.destinations(),
        kept_constraints(folder, plan, hierarchy),
    )
    target.start(identity, spec, plan, hierarchy, *others)
    try:
        with new_folder(target.measurements) as partial:
            # A link, should one have come in since the folder was looked at, stays a link.
            shutil.copytree(folder.measurements, partial, symlinks=True, dirs_exist_ok=True)
        return finish(target, progress)
    except TrellisError:  # such as a method that does not fit what was measured
        shutil.rmtree(target.path)
        raise


def _with_method(
    folder: RunFolder, method: str, penalty: Fraction | None
) -> tuple[dict[str, Any], Plan]:
    """The spec and the plan of a run with another method."""
    spec, plan = yaml.safe_load(folder.spec.read_text(encoding="utf-8")), folder.plan()
    if plan.kind == FLOWS:
        return with_estimator(spec, plan, method, penalty)
    if penalty is not None:
        raise RunFolderError("Only flows have estimators with a penalty.")
    if plan.kind == GROUP_SIZES:
        spec["mechanism"] = method
    else:
        spec["estimate"] = {**spec.get("estimate", {}), "method": method}
    return spec, replace(plan, method=method, expected_errors=None)


def _kept_estimates(
    folder: RunFolder, plan: Plan, hierarchy: Hierarchy
) -> Estimates | HistogramEstimates:
    if plan.histogram is not None:
        return kept_estimates(folder, plan, hierarchy)
    return read_estimates(folder.estimates, hierarchy, plan.schema, adds_up=plan.adds_up)


def published_estimates(
    measurements: Measurements, hierarchy: Hierarchy, interests: Interests, estimates: Estimates
) -> tuple[Estimates, list[AreaEstimates]]:
    """Estimates of the published levels, and of the areas of interest.

    Nothing is uncertain about a count that exact totals fix.
    """
    plan, errors, areas = measurements.plan, None, []
    if estimates.std_error is not None and (interests.spine is not None or interests.categories):
        empty = empty_nodes(measurements)
        errors = AreaErrors.on(plan, hierarchy, interests.spine, empty)
    if interests.spine is not None:
        assert errors is not None
        estimates = carry_back(estimates, hierarchy, interests.spine, errors)
    facts = exact_totals(plan, estimates, measurements)
    for category in interests.categories:
        found = estimate_areas(estimates, category, interests.spine, errors)
        if found.std_error is not None:
            allowed = category_range(facts, category)
            found = replace(found, std_error=settled(found.std_error, allowed, found.counts))
        areas.append(found)
    if estimates.std_error is None:
        return estimates, areas
    std_error = [
        settled(error, level_range(facts, level), estimates.counts[level])
        for level, error in enumerate(estimates.std_error)
    ]
    return replace(estimates, std_error=tuple(std_error)), areas


def exact_totals(
    plan: Plan, estimates: Estimates, measurements: Measurements | None
) -> ExactTotals | None:
    """What is known exactly: totals that the published counts keep, or numbers of groups."""
    if plan.kind != GROUP_SIZES:
        return ExactTotals.of_counts(plan, estimates)
    assert measurements is not None
    tree = estimates.hierarchy
    groups = group_numbers(measurements)[-1]
    return ExactTotals(tree, tree.leaf_level, groups, plan.schema.n_cells)


def _write_release(
    folder: RunFolder,
    plan: Plan,
    estimates: Estimates | HistogramEstimates,
    areas: Sequence[AreaEstimates],
    csv: bool | None,
) -> None:
    if isinstance(estimates, HistogramEstimates):
        write_histogram_release(folder, plan, estimates, csv)
        return
    measured = None
    if plan.kind == GROUP_SIZES:
        measured = read_measurements(folder.measurements, plan, estimates.hierarchy)
    facts = exact_totals(plan, estimates, measured)
    remove_partials(folder.release)
    with new_folder(folder.release) as partial:
        write_tables(partial, plan, estimates, facts, csv)
        write_area_tables(partial, plan, areas, facts, csv)
        if measured is not None:
            write_statistics(partial, plan, estimates, group_numbers(measured), csv)
            guide = size_guide(plan, estimates)
        else:
            guide = reading_guide(plan)
        (partial / "README.md").write_text(guide, encoding="utf-8")
        write_data_package(partial, plan)


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    begin = perf_counter()
    yield
    seconds[stage] = perf_counter() - begin
