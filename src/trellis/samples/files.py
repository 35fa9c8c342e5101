"""What can be written to start from: a made-up state, or a spec for a file of records."""

from __future__ import annotations

from pathlib import Path


def demo(out: str | Path = "trellis-demo", *, histogram: bool = False) -> Path:
    """Write the data and the spec of a made-up state; returns the path of the spec.

    A spec that is there already stays as it is. `histogram` makes 6,000 blocks with attributes, in
    place of 50,000 without.

        release = tr.load(tr.demo()).run()
    """
    from trellis.samples.demo import write_demo
    from trellis.samples.redistricting import write_histogram_demo

    spec = Path(out) / "spec.yaml"
    if not spec.exists():
        (write_histogram_demo if histogram else write_demo)(Path(out))
    return spec


def starter(
    records: str | Path,
    out: str | Path = "spec.yaml",
    *,
    kind: str = "counts",
    has_header: bool = False,
) -> Path:
    """Write a commented spec with gaps for a file of records; returns its path.

    It is made from the names and types of the columns, never from values. Keys that decide on
    privacy say FILL_IN, and `tr.load` refuses a spec that still does. `has_header` confirms that
    the first line of a text file names its columns.

    >>> tr.starter("people.csv", "starter.yaml", has_header=True).name
    'starter.yaml'
    """
    from trellis.samples.starter import write_starter

    write_starter(Path(records), Path(out), kind, has_header=has_header)
    return Path(out)
