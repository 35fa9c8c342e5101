"""False numbers: in measurements, estimates, tables, and what they rest on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from forgeries import worlds
from forgeries.forgery import (
    Forgery,
    edited,
    first,
    largest_noisy,
    shift,
    tables,
    with_values,
)
from forging import change_column, estimates, move, parents, publish_again, siblings
from verify.forged_files import dense_counts, write_counts


def swapped(run: Path) -> None:
    """Two leaves of one family, in every column of the estimates."""
    left, right = siblings(run, "count")
    path = estimates(run)[-1]

    def swap(values: np.ndarray) -> np.ndarray:
        values[[left, right]] = values[[right, left]]
        return values

    for column in pq.read_schema(path).names:
        change_column(path, column, swap)
    publish_again(run)


def swapped_histograms(run: Path) -> None:
    counts, parent = dense_counts(run, "town"), parents(run)[-1]
    left, right = next(
        (a, b)
        for a in range(len(parent))
        for b in np.flatnonzero(parent == parent[a])
        if (counts[a] != counts[b]).any()
    )
    counts[[left, right]] = counts[[right, left]]
    write_counts(run, "town", counts)
    publish_again(run)


def one_more(run: Path) -> None:
    move(run, "count", siblings(run, "count")[1], 1)
    publish_again(run)


def errors_of(part: str):
    """All standard errors of the estimates are halved, and published so."""

    def forge(run: Path) -> None:
        for path in tables(run, part):
            if "std_error" in pq.read_schema(path).names:
                change_column(path, "std_error", lambda values: values / 2)
        publish_again(run)

    return forge


def moved_centres(run: Path) -> None:
    for path in tables(run, "estimates"):
        if "centre" in pq.read_schema(path).names:
            with_values(path, "centre", first(lambda x: x + 0.25))
    publish_again(run)


def unheard(run: Path) -> None:
    """A measurement that no estimate follows."""
    with_values(largest_noisy(run), "value", shift(50))


def without_noise(run: Path) -> None:
    """Every level measured as the sum of the blocks."""
    for path, level in zip(reversed(estimates(run)), reversed(parents(run)), strict=True):
        counts = pq.read_table(path)["count"].to_pylist()
        folder = run / "measurements" / path.stem
        (measured,) = [f for f in folder.glob("*.parquet") if len(level) == len(counts)]
        with_values(measured, "value", lambda _, counts=counts: counts)
    publish_again(run, "estimates")


def a_tenth_of_the_noise(run: Path) -> None:
    """The values of this release, told as those of one with far more noise."""
    other = worlds.state(run.parent / "other", budget="1/100")
    for path in tables(run, "measurements"):
        values = pq.ParquetFile(path).read()["value"].to_pylist()
        with_values(other / path.relative_to(run), "value", lambda _, values=values: values)
    publish_again(other, "estimates")
    run.rename(run.parent / "before")
    other.rename(run)


def narrower(folder: str):
    def forge(run: Path) -> None:
        path = tables(run, folder)[-1]
        lower = pq.read_table(path)["lower"].to_pylist()
        at = int(np.argmax(np.array(lower) >= 0))
        with_values(path, "lower", lambda v: [*v[:at], v[at] + 1, *v[at + 1 :]])
        path.with_suffix(".csv").unlink()

    return forge


def in_table(name: str, column: str, change):
    return lambda run: with_values(run / name, column, first(change))


def another_place(run: Path) -> None:
    """The first two leaves in each other's areas of interest."""

    def swap(values: list) -> list:
        at = next(i for i, value in enumerate(values) if value != values[0])
        values[0], values[at] = values[at], values[0]
        return values

    with_values(run / "areas.parquet", "zone", swap)


def another_spine(run: Path) -> None:
    """A leaf of the spine under its neighbour's parent."""

    def adopt(values: list) -> list:
        at = next(i for i in range(len(values) - 1, 0, -1) if values[i] != values[i - 1])
        values[at] = values[at - 1]
        return values

    with_values(run / "spine.parquet", "parent", adopt)


def other_people(run: Path) -> None:
    with_values(run / "release/microdata.parquet", "age", first(lambda x: "3" if x != "3" else "2"))


def two_classes(run: Path) -> None:
    path = next((run / "estimates/margins/level=town").glob("*sex.parquet"))
    with_values(path, "class", lambda values: [*values[:-1], 0 if values[-1] else 1])


AUDIT = "release/edit_rules.json"
COUNTS = ("counts", "areas", "spine")

NUMBERS = [
    Forgery("two siblings exchanged", "linear_estimates", COUNTS, swapped),
    Forgery("two siblings of histograms exchanged", "whole_counts", ("histograms",),
            swapped_histograms),
    Forgery("one person more in a leaf and all that hold it", "whole_counts", ("counts", "areas"),
            one_more),
    Forgery("halved standard errors", "standard_errors", ("counts", "spine", "group sizes",
            "another method"), errors_of("estimates")),
    Forgery("halved standard errors of areas of interest", "standard_errors", ("areas",),
            errors_of("estimates/areas")),
    Forgery("halved standard errors of histograms", "histogram_estimates", ("histograms", "rules"),
            errors_of("estimates/margins")),
    Forgery("halved standard errors of flows", "flow_margins", ("flows",), errors_of("estimates")),
    Forgery("estimates moved by a quarter", "linear_estimates", (*COUNTS, "group sizes"),
            moved_centres),
    Forgery("estimates of histograms moved by a quarter", "histogram_estimates", ("histograms",),
            moved_centres),
    Forgery("estimates of flows moved by a quarter", "flow_margins", ("flows",), moved_centres),
    Forgery("measurements that no estimate follows", "linear_estimates",
            ("counts", "spine", "areas", "group sizes", "another method"), unheard),
    Forgery("measurements of histograms that no estimate follows", "histogram_estimates",
            ("histograms",), unheard),
    Forgery("measurements of flows that no estimate follows", "flow_margins", ("flows",), unheard),
    Forgery("true counts in the place of many measurements", "scatter", ("a state",),
            without_noise),
    Forgery("far more noise stated than drawn, throughout", "scatter", ("a state",),
            a_tenth_of_the_noise),
    Forgery("a narrower interval", "intervals", ("counts", "spine", "group sizes"),
            narrower("release")),
    Forgery("a narrower interval of an area of interest", "areas", ("areas",),
            narrower("release/areas")),
    Forgery("a statistic of group sizes", "statistics", ("group sizes",),
            in_table("release/statistics/town.parquet", "value", lambda x: x + 1)),
    Forgery("an end of an interval of a statistic", "statistic_intervals", ("group sizes",),
            in_table("release/statistics/town.parquet", "upper", lambda x: x + 1)),
    Forgery("leaves in other areas of interest", "planned", ("areas", "spine"), another_place),
    Forgery("a spine with another tree", "planned", ("spine",), another_spine),
    Forgery("other people in the microdata", "microdata", ("histograms",), other_people),
    Forgery("an origin-destination matrix of its own", "flow_matrix", ("flows",),
            in_table("release/od_matrix.parquet", "count", lambda x: x + 1)),
    Forgery("an audit of edit rules that finds nothing", "edit_rules", ("rules",),
            edited(AUDIT, lambda lines: lines[0].update(applies_to=0))),
    Forgery("an audit of edit rules with a line left out", "edit_rules", ("rules",),
            edited(AUDIT, lambda lines: lines.pop())),
    Forgery("a constraint on another level", "constraint_rows", ("rules",),
            in_table("constraints.parquet", "level", lambda _: "state")),
    Forgery("a constraint with the opposite sense", "constraint_rows", ("rules",),
            in_table("constraints.parquet", "sense", lambda _: "<=")),
    Forgery("two classes of error in one area", "histogram_margins", ("histograms",),
            two_classes),
]  # fmt: skip
