"""True counts hidden where readers do not look."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from forgeries.forgery import (
    Forgery,
    appended,
    edited,
    replaced,
    respecified,
    rewritten,
    tables,
)
from forgeries.worlds import KINDS
from forging import edit_footer

TRUTH = "true: 17"


def in_a_column(run: Path) -> None:
    for path in tables(run, "measurements"):
        rewritten(path, lambda t: t.append_column("truth", pa.array([17] * len(t))))


def in_file_metadata(run: Path) -> None:
    path = tables(run, "release")[0]
    rewritten(path, lambda t: t.replace_schema_metadata({**(t.schema.metadata or {}), "a": TRUTH}))


def in_column_metadata(run: Path) -> None:
    def hide(table: pa.Table) -> pa.Table:
        return table.cast(table.schema.set(0, table.schema.field(0).with_metadata({"a": TRUTH})))

    rewritten(tables(run, "estimates")[0], hide)


def before_the_footer(run: Path) -> None:
    path = tables(run, "release")[0]
    content = path.read_bytes()
    at = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    path.write_bytes(content[:at] + TRUTH.encode() + content[at:])


def in_the_name_of_the_writer(run: Path) -> None:
    edit_footer(tables(run, "release")[0], b"parquet-cpp", b"true: 17171")


def as_an_end(run: Path) -> None:
    path = tables(run, "estimates")[-1]
    about = pq.read_metadata(path).row_group(0)
    columns = {about.column(i).path_in_schema: about.column(i) for i in range(about.num_columns)}
    most = int(columns["count"].statistics.max)
    edit_footer(path, most.to_bytes(8, "little"), (most + 1717).to_bytes(8, "little"))


def in_an_unused_text(run: Path) -> None:
    """In the dictionary of a column of text, at an entry that no row uses."""

    def hide(table: pa.Table) -> pa.Table:
        at = next(i for i, f in enumerate(table.schema) if pa.types.is_string(f.type))
        column = table[at].combine_chunks().dictionary_encode()
        more = pa.concat_arrays([column.dictionary, pa.array([TRUTH])])
        return table.set_column(
            at, table.schema.field(at).name, pa.DictionaryArray.from_arrays(column.indices, more)
        )

    path = next(p for p in tables(run, "release") if pa.string() in pq.read_schema(p).types)
    rewritten(path, hide)


def in_csv(change) -> object:
    def forge(run: Path) -> None:
        path = next(iter(sorted((run / "release").rglob("*.csv"))))
        path.write_bytes(change(path.read_bytes()))

    return forge


def as_a_folder(run: Path) -> None:
    (run / "release" / "true-17").mkdir()


def as_a_file(run: Path) -> None:
    (run / "release" / ".truth").write_text(TRUTH)


def with_a_key_twice(run: Path) -> None:
    path = run / "spec.yaml"
    path.write_text(f"release: '{TRUTH}'\n" + path.read_text(encoding="utf-8"))


FEW = ("flows", "histograms")
"""For what all kinds write with the same code."""

SMUGGLED = [
    Forgery("a column of true counts", "inventory", KINDS, in_a_column),
    Forgery("metadata of a Parquet file", "inventory", (*KINDS, "areas"), in_file_metadata),
    Forgery("metadata of a Parquet column", "inventory", KINDS, in_column_metadata),
    Forgery("bytes before a Parquet footer", "inventory", (*KINDS, "spine"), before_the_footer),
    Forgery("the name of the program that wrote a Parquet file", "inventory", KINDS,
            in_the_name_of_the_writer),
    Forgery("a greatest value that no row has", "values", ("group sizes", "counts", "flows"),
            as_an_end),
    Forgery("a text that no row has", "values", ("flows", "areas"), in_an_unused_text),
    Forgery("a folder without files", "inventory", KINDS, as_a_folder),
    Forgery("a file that no run writes", "inventory", KINDS, as_a_file),
    Forgery("a line after a CSV table", "csv", FEW, in_csv(lambda b: b + b"# true: 17\n")),
    Forgery("blank lines after a CSV table", "csv", FEW, in_csv(lambda b: b + b"\n\n")),
    Forgery("a byte order mark", "csv", FEW, in_csv(lambda b: b"\xef\xbb\xbf" + b)),
    Forgery("other line ends", "csv", FEW, in_csv(lambda b: b.replace(b"\n", b"\r\n"))),
    Forgery("a comment in the spec", "written", FEW, appended("spec.yaml", b"# true: 17\n")),
    Forgery("a key twice in the spec", "written", FEW, with_a_key_twice),
    Forgery("blank space after JSON", "written", FEW, appended("plan.json", b" \t \n")),
    Forgery("an unknown key of the spec", "planned", (*KINDS, "spine"),
            respecified(lambda s: s["data"].update(truth="17"))),
    Forgery("a value of another form in the spec", "planned", KINDS,
            respecified(lambda s: s["hierarchy"].update(public={"true": 17}))),
    Forgery("an unknown key of the plan", "planned", KINDS,
            edited("plan.json", lambda p: p.update(truth=17))),
    Forgery("an unknown key of the privacy record", "privacy", KINDS,
            edited("privacy.json", lambda p: p.update(truth=17))),
    Forgery("an unknown key of the run", "stamps", FEW,
            edited("run.json", lambda r: r.update(truth=17))),
    Forgery("an unknown key of the manifest", "stamps", FEW,
            edited("manifest.json", lambda m: m.update(truth=17))),
    Forgery("an unknown key of the data package", "data_package", KINDS,
            edited("release/datapackage.json", lambda p: p.update(truth=17))),
    Forgery("an unknown key of the fit", "fit", ("histograms",),
            edited("estimates/fit.json", lambda f: f.update(truth=17))),
    Forgery("a comment in the registry record", "deployment", FEW,
            appended("deployment.yaml", b"# true: 17\n")),
    Forgery("a comment in the report", "report", (*KINDS, "areas"),
            replaced("report/index.html", "</body>", "<!-- true: 17 --></body>")),
    Forgery("a line after the reading guide", "guide", FEW,
            appended("release/README.md", b"[//]: # (true: 17)\n")),
]  # fmt: skip
