"""The sections of a report that only a release of histograms has."""

from __future__ import annotations

import numpy as np

from trellis.verify.documents.histogram_guide import (
    audited_rules,
    described_factors,
    stated_bounds,
    width,
)  # fmt: skip
from trellis.verify.files.run_files import RunFiles
from trellis.verify.report import charts
from trellis.verify.report.accuracy import margin_section, spread_row
from trellis.verify.report.elements import bullets, link, paragraph, picture, section, table
from trellis.verify.report.tables import MARGINS, read, spreads
from trellis.wording import html as shell
from trellis.wording import report as words
from trellis.wording.kinds import KINDS


def counted(run: RunFiles) -> str:
    described = described_factors(run.plan).items()
    factors = [words.FACTOR.format(name=name, text=text) for name, text in described]
    linked = link("../release/microdata.parquet", words.MICRODATA)
    made = shell.MICRODATA.format(link=linked, text=words.MICRODATA_TEXT)
    microdata = run.plan["histogram"]["microdata"]
    return section(words.COUNTED, bullets(factors), made if microdata else "")


def published(run: RunFiles) -> str:
    """Each table with its size and its standard errors."""
    plan, found = run.plan, {spread.name: spread for spread in spreads(run)}
    areas = {level["level"]: level["areas"] for level in plan["levels"]}
    rows, totals = [], []
    for level, query in plan["histogram"]["tables"]:
        spread = found.get(f"{level}/{query.replace(' * ', ',')}")
        if query == "total" and spread is not None:
            totals.append((level, spread.median))
        numbers = ["-"] * 3 if spread is None else spread_row(spread)[2:]
        rows.append([level, query, f"{areas[level]:,}", f"{width(plan, query):,}", *numbers])
    counts = words.WHOLE_COUNTS if run.is_whole else words.REAL_COUNTS
    return section(
        words.PUBLISHED,
        paragraph(words.PUBLISHED_TEXT.format(counts=counts)),
        picture(charts.bars(words.MEDIAN_OF_TOTALS, "", totals)) if totals else "",
        paragraph(words.ERRORS_ARE_IN.format(unit=KINDS["histograms"]["counted_in"])),
        table(words.PUBLISHED_COLUMNS, rows),
    )


def margin(run: RunFiles) -> str:
    """The first interval with two ends."""
    for level, query in run.plan["histogram"]["tables"]:
        found = read(run, f"{level}/{query.replace(' * ', ',')}")
        if found["lower"].null_count:
            return ""
        wide = np.flatnonzero(found["lower"].to_numpy() < found["upper"].to_numpy())
        if wide.size:
            row = found.slice(int(wide[0]), 1).to_pylist()[0]
            common = {"geocode", "level", *MARGINS}
            cell = ", ".join(str(text) for name, text in row.items() if name not in common)
            return margin_section(run, level, row["geocode"], cell or "total", row)
    return ""


def rules(run: RunFiles) -> str:
    if not run.is_whole:
        return ""
    histogram = run.plan["histogram"]
    kept = [words.ZERO.format(rule=rule) for rule in histogram["structural_zeros"]]
    kept += stated_bounds(run)
    rows = [
        [line["level"], line["rule"], f"{line['applies_to']:,}", f"{line['broken_in']:,}"]
        for line in audited_rules(run)
    ]
    if not kept and not rows:
        return ""
    about = words.ENFORCED if histogram["enforce_edit_rules"] else words.NOT_ENFORCED
    return section(
        words.RULES,
        bullets(kept) if kept else "",
        paragraph(about) if rows else "",
        table(words.AUDIT_COLUMNS, rows) if rows else "",
    )
