"""Specs as a user holds them: one class for each kind, with what can be done with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import PrivateAttr

from trellis.api.inputs import Areas, Hierarchy, Optimal, Records, Register, Source
from trellis.errors import SpecError
from trellis.spec import SPECS
from trellis.spec import Spec as SpecOfAnyKind
from trellis.spec.counts import CountsSpec
from trellis.spec.flows import FlowsSpec
from trellis.spec.group_sizes import GroupSizesSpec
from trellis.spec.histograms import HistogramsSpec
from trellis.workflow.frames import Frames
from trellis.workflow.progress import Progress

if TYPE_CHECKING:
    from trellis.api.plans import Plan
    from trellis.api.releases import Release
    from trellis.api.runs import Run


class Spec(SpecOfAnyKind):
    """A release, as its owner describes it.

    Each kind has a class: `Counts`, `Histograms`, `GroupSizes`, `Flows`. Arguments are the keys of
    the YAML file. Python also takes `name` (for `release`), `records` (for `data`), `register` (for
    `group_register`), `protects`, `noise` and `shares` (together, for `privacy`), and frames
    wherever YAML names a file.

    `spec.to_yaml(path)` writes the file, and `tr.load(path)` gives an equal spec. Frames are not
    part of the text; `with_frames` gives them to a spec that was loaded.

    >>> spec.to_yaml("spec.yaml").splitlines()[0]
    'release: towns'
    >>> tr.load("spec.yaml") == spec
    True
    >>> tr.load("spec.yaml").with_frames(records=people, hierarchy=areas).plan().levels
    ('country', 'region', 'town')
    """

    _frames: Frames = PrivateAttr(default_factory=Frames)

    def __init__(self, /, **values: Any) -> None:
        """Validate; relative paths are taken from the current folder."""
        keys, frames = _as_keys(values)
        super().__init__(**keys)
        self._frames = frames

    @classmethod
    def of_kind(cls, kind: Any) -> type[Self]:
        """The class of a kind of release."""
        super().of_kind(kind)
        found: Any = _CLASSES.get(kind) or _made(kind)
        return found

    @classmethod
    def of(cls, spec: SpecOfAnyKind) -> Spec:
        """Any spec, as a user holds it."""
        return spec if isinstance(spec, Spec) else cls.parse(spec.to_dict(), spec.folder)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with these keys changed, validated again."""
        copy = super().model_copy(update=update, deep=deep)
        copy._frames = self._frames
        return copy

    def with_frames(
        self,
        *,
        records: Any = None,
        hierarchy: Any = None,
        register: Any = None,
        areas: Mapping[str, Any] | None = None,
        destinations: Any = None,
    ) -> Self:
        """The same spec with frames in place of the files that it names."""
        given = Frames(records, hierarchy, register, areas, destinations)
        copy = self.model_copy()
        copy._frames = _merged(self._frames, given)
        return copy

    @property
    def frames(self) -> Frames:
        """Frames in memory that replace files."""
        return self._frames

    def plan(self, *, progress: Progress | None = None) -> Plan:
        """Shares, noise, expected errors and the guarantee; no counts are touched."""
        from trellis.api.plans import Plan

        return Plan.of(self, progress)

    def check(
        self, *, new_edition: bool = False, same_records: bool = False,
        progress: Progress | None = None,
    ) -> Plan:  # fmt: skip
        """Read and validate all that a run reads; nothing is spent."""
        from trellis.api.plans import Plan

        return Plan.checked(self, new_edition, same_records, progress)

    def measure(
        self, out: str | Path | None = None, *, new_edition: bool = False,
        same_records: bool = False, progress: Progress | None = None,
    ) -> Run:  # fmt: skip
        """Plan, charge the ledger, and draw noise; see `Plan.measure`."""
        from trellis.api.runs import Run

        return Run.measured(
            self, out, new_edition=new_edition, same_records=same_records, progress=progress
        )

    def run(
        self, out: str | Path | None = None, *, new_edition: bool = False,
        same_records: bool = False, progress: Progress | None = None,
    ) -> Release:  # fmt: skip
        """A complete release. Started again, it resumes after the last finished stage."""
        from trellis.api.runs import Run

        return Run.completed(
            self, out, new_edition=new_edition, same_records=same_records, progress=progress
        )

    def _repr_html_(self) -> str:
        from trellis.api.pages import text_block

        return text_block(f"{self.release}: {self.title}", self.to_yaml())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.release!r}, dataset {self.dataset!r})"

    __str__ = __repr__


class Counts(CountsSpec, Spec):
    """Counts of records by cell, for every area of every level.

    >>> spec = tr.Counts(
    ...     name="towns",
    ...     dataset="people-2026",
    ...     records=tr.Records(people, area="town"),
    ...     hierarchy=tr.Hierarchy.from_columns(areas, ["region", "town"], root=("country", "all")),
    ...     protects=tr.Unit("person", neighbours="add_remove", max_contribution=1),
    ...     noise=tr.Gaussian(rho="1/2"),
    ...     shares=tr.Optimal(),
    ... )
    >>> spec
    Counts('towns', dataset 'people-2026')
    """


class Histograms(HistogramsSpec, Spec):
    """Counts of records by all combinations of attributes, with rules and bounds.

    >>> spec = tr.Histograms(
    ...     name="towns-by-sex",
    ...     dataset="people-2026",
    ...     records=tr.Records("people.csv", area="town"),
    ...     hierarchy=tr.Hierarchy.from_columns(areas, ["region", "town"], root=("country", "all")),
    ...     schema={"sex": ["female", "male"]},
    ...     strategy={"default": {"total": "1/4", "detailed": "3/4"}},
    ...     output={"tables": {"default": ["total", "sex"]}},
    ...     protects=tr.Unit("person", neighbours="replace", max_contribution=1),
    ...     noise=tr.Gaussian(epsilon=1, delta=1e-10),
    ... )
    >>> spec.plan().levels
    ('country', 'region', 'town')
    """


class GroupSizes(GroupSizesSpec, Spec):
    """How many groups of every area have which size.

    >>> homes = pa.table({"home": ["a", "b", "c"], "town": ["ash", "elm", "oak"]})
    >>> spec = tr.GroupSizes(
    ...     name="homes",
    ...     dataset="people-2026",
    ...     records=tr.Records("people.csv", group="home"),
    ...     register=tr.Register(homes, group="home", area="town"),
    ...     hierarchy=tr.Hierarchy.from_columns(areas, ["region", "town"], root=("country", "all")),
    ...     sizes={"cap": 6, "top_code": True},
    ...     unprotected={"groups": True},
    ...     protects=tr.Unit("person", neighbours="add_remove", max_contribution=1),
    ...     noise=tr.Laplace(epsilon=1),
    ...     shares="uniform",
    ... )
    >>> spec.plan().method.name
    'cumulative_joint'
    """


class Flows(FlowsSpec, Spec):
    """Trips between areas of origin and of destination.

    >>> spec = tr.Flows(
    ...     name="commuting",
    ...     dataset="commuters-2026",
    ...     records=tr.Records("trips.csv", origin="home", destination="work"),
    ...     hierarchy=tr.Hierarchy.from_columns(areas, ["region", "town"], root=("country", "all")),
    ...     estimate={"method": "gls_sparse", "penalty": 2},
    ...     protects=tr.Unit("worker", neighbours="replace", max_contribution=1),
    ...     noise=tr.Gaussian(rho=1),
    ... )
    >>> spec.plan().levels[-1]
    'town-to-town'
    """


_CLASSES: dict[str, type[Spec]] = {
    "counts": Counts, "histograms": Histograms, "group_sizes": GroupSizes, "flows": Flows
}  # fmt: skip


def _made(kind: str) -> type[Spec]:
    """A class for a kind that has none here."""
    bases: Any = (SPECS[kind], Spec)
    made: Any = type(SPECS[kind].__name__, bases, {"__module__": __name__})
    return _CLASSES.setdefault(kind, made)


def load(path: str | Path) -> Spec:
    """Read a spec from a YAML file; relative paths in it are taken from its folder.

    >>> spec.to_yaml("copy.yaml")[:14]
    'release: towns'
    >>> tr.load("copy.yaml")
    Counts('towns', dataset 'people-2026')
    """
    return Spec.load(path)


def _merged(old: Frames, new: Frames) -> Frames:
    given = {f.name: getattr(new, f.name) for f in fields(Frames)}
    return replace(old, **{name: frame for name, frame in given.items() if frame is not None})


# -- from Python's words to the keys of a spec ----------------------------------------------------

_PRIVACY = ("protects", "noise", "shares")


def _as_keys(values: Mapping[str, Any]) -> tuple[dict[str, Any], Frames]:
    keys, frames = dict(values), {}
    for word, key in (("name", "release"), ("records", "data"), ("register", "group_register")):
        if word in keys:
            _refuse_both(keys, word, key)
            keys[key] = keys.pop(word)
    if any(word in keys for word in _PRIVACY):
        _refuse_both(keys, next(w for w in _PRIVACY if w in keys), "privacy")
        keys["privacy"] = _privacy(*(keys.pop(word, None) for word in _PRIVACY))
    for key, frame in (
        ("data", "records"), ("hierarchy", "hierarchy"), ("group_register", "register"),
        ("destinations", "destinations"),
    ):  # fmt: skip
        if isinstance(keys.get(key), Source | Hierarchy):
            frames[frame], keys[key] = keys[key].frame, keys[key].keys()
    if isinstance(keys.get("areas"), Mapping):
        areas = {name: area for name, area in keys["areas"].items() if isinstance(area, Areas)}
        frames["areas"] = {n: a.frame for n, a in areas.items() if a.frame is not None} or None
        keys["areas"] = {**keys["areas"], **{name: area.keys() for name, area in areas.items()}}
    return keys, Frames(**frames)


def _refuse_both(keys: Mapping[str, Any], word: str, key: str) -> None:
    if key in keys:
        raise SpecError(f"{word} and {key} mean the same. Give only one of them.")


def _privacy(protects: Any, noise: Any, shares: Any) -> dict[str, Any]:
    for word, given in (("protects", protects), ("noise", noise)):
        if given is not None and not hasattr(given, "keys"):
            raise SpecError(f"{word}: give tr.Unit(..), tr.Gaussian(..) or tr.Laplace(..).")
    found = {**(protects.keys() if protects else {}), **(noise.keys() if noise else {})}
    if shares is not None:
        found["shares"] = shares.key() if isinstance(shares, Optimal) else shares
    return found


__all__ = [
    "Counts", "Flows", "GroupSizes", "Histograms", "Records", "Register", "Spec", "load",
]  # fmt: skip
