"""What verification cannot tell from an honest release; some of it the ledger can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from forgeries.forgery import (
    Unnoticed,
    edited,
    largest_noisy,
    respecified,
    retold,
    shift,
    tables,
    with_values,
)
from forgeries.worlds import LEDGER
from forging import publish_again, write_json


def arguments(forgery: Unnoticed, folder: Path) -> dict[str, Path]:
    """The file that finds a forgery, next to the honest run."""
    files = {"ledger": LEDGER, "hierarchy": "areas.csv"}
    return {forgery.finder: folder / files[forgery.finder]}


def chosen(run: Path) -> None:
    """Noise of somebody's choice, and everything computed from it."""
    with_values(largest_noisy(run), "value", shift(2))
    publish_again(run, "estimates")


def another_total(run: Path) -> None:
    for path in tables(run, "measurements"):
        if not pq.read_table(path)["variance"][0].as_py():
            with_values(path, "value", lambda values: [value + 7 for value in values])
    publish_again(run, "estimates")


def renamed(run: Path) -> None:
    """One town has another code, in all files."""
    from trellis.verify.files.run_files import RunFiles
    from trellis.verify.files.trees import read_tree, tree_digest

    codes = pq.read_table(run / "hierarchy.parquet")["code"].to_pylist()
    old, new = codes[-1], f"{codes[-1]}x"
    for path in (run / "hierarchy.parquet", *tables(run, "measurements")):
        column = "code" if path.name == "hierarchy.parquet" else "geocode"
        with_values(path, column, lambda v: [new if code == old else code for code in v])
    digest = tree_digest(read_tree(RunFiles(run), "hierarchy.parquet"))
    edited("plan.json", lambda plan: plan.update(hierarchy_sha256=digest))(run)
    publish_again(run, "estimates")


def taken_back(run: Path) -> None:
    """As if it had never been withdrawn."""
    (run / "withdrawn.json").unlink()
    publish_again(run)


def bound(run: Path) -> None:
    """An office's own bound, lower than it was."""
    with_values(run / "constraints.parquet", "bound", lambda v: [max(v[0] - 1, 0), *v[1:]])


def in_another_order(run: Path) -> None:
    content = json.loads((run / "privacy.json").read_text())
    write_json(run / "privacy.json", dict(reversed(content.items())))


def compressed_otherwise(run: Path) -> None:
    path = tables(run, "release")[0]
    pq.write_table(pq.ParquetFile(path).read(), path, compression="gzip")


def unit(content: Any) -> None:
    content.get("privacy", content.get("protection")).update(unit="household")


UNNOTICED = [
    Unnoticed("noise that was chosen, and everything computed from it", "counts", chosen, "ledger"),
    Unnoticed("an exact total changed, and everything computed from it", "counts",
              another_total, "ledger"),
    Unnoticed("another unit of protection throughout", "counts", retold(unit, unit), "ledger"),
    Unnoticed("a notice of withdrawal taken away", "withdrawn", taken_back, "ledger"),
    Unnoticed("another code of an area throughout", "counts", renamed, "hierarchy"),
    Unnoticed("another name of a column of the confidential file", "counts",
              respecified(lambda s: s["data"].update(area="true: 17"))),
    Unnoticed("whether the areas are those of the confidential file", "counts",
              respecified(lambda s: s["hierarchy"].update(public=not s["hierarchy"]["public"]))),
    Unnoticed("another weight of areas of interest", "areas",
              respecified(lambda s: s["areas"]["zone"].update(weight="17"))),
    Unnoticed("another bound of a constraint, which the counts keep", "rules", bound),
    Unnoticed("a distance to the best fit within its tolerance", "histograms",
              edited("estimates/fit.json", lambda f: f.update(distance=0.0299))),
    Unnoticed("another seed of ties, where there are none", "another method",
              edited("run.json", lambda r: r.update(tie_seed=17))),
    Unnoticed("another duration", "counts",
              edited("manifest.json", lambda m: m["seconds"].update(estimate=17.0))),
    Unnoticed("another version of Python or of a package", "counts",
              edited("manifest.json", lambda m: m["packages"].update(numpy="17.17"))),
    Unnoticed("keys of JSON in another order", "counts", in_another_order),
    Unnoticed("a Parquet file compressed otherwise", "counts", compressed_otherwise),
]  # fmt: skip
