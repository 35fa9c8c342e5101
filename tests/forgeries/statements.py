"""False statements: what is protected, how well, by which method."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

from forgeries.forgery import REDUCED, Forgery, edited, replaced, respecified, retold
from forgeries.worlds import KINDS
from forging import edit_json, publish_again, write_json


def nothing(_content: Any) -> None:
    """As it is."""


def stated_rho(rho: str):
    return lambda spec: spec["privacy"].update(budget={"rho": rho})


def planned_rho(rho: str):
    return lambda plan: plan.update(budget={"rho": rho})


def protection(**keys: Any):
    return lambda plan: plan["protection"].update(keys)


def privacy_of_spec(**keys: Any):
    return lambda spec: spec["privacy"].update(keys)


def noisier(plan: dict) -> None:
    """Twice the noise, as if half of rho had been spent."""
    planned_rho("1/2")(plan)
    for q in plan["queries"]:
        if q["noise"] is not None:
            q["noise"]["parameter"] = str(2 * Fraction(q["noise"]["parameter"]))


def in_older_format(run: Path, number: int = 2) -> None:
    for name in ("plan.json", "privacy.json", "run.json"):
        edit_json(run / name, lambda content: content.update(format=number))


def in_older_format_with_lies(run: Path) -> None:
    in_older_format(run)
    for name in ("release/README.md", "report/index.html", "deployment.yaml"):
        (run / name).write_text("There is nothing to fear.")


def of_another_version(run: Path) -> None:
    """The report of another version is not compared word for word."""
    edit_json(run / "manifest.json", lambda manifest: manifest.update(trellis="0.0.1"))
    path = run / "deployment.yaml"
    text = path.read_text(encoding="utf-8")
    head, _, tail = text.partition("Trellis ")
    path.write_text(head + "Trellis 0.0.1" + tail[tail.index(",") if "," in tail[:12] else 5 :])


def with_an_excuse(run: Path) -> None:
    """A fit so poor that any counts would do; the guide says so."""
    write_json(run / "estimates" / "fit.json", {"distance": 1000.0, "tolerance": 0.03})
    publish_again(run)


def with_another_confidence(run: Path) -> None:
    """Everywhere but in the tables, whose intervals stay as they are."""
    kept = shutil.copytree(run / "release", run.parent / "kept")
    retold(lambda s: s["output"].update(confidence="1/2"), lambda p: p.update(confidence="1/2"))(
        run
    )
    for path in (p for p in kept.rglob("*") if p.suffix in (".csv", ".parquet")):
        shutil.copy(path, run / "release" / path.relative_to(kept))


BETTER = {"epsilon_at_delta": {"1e-10": 0.001}}

STATEMENTS = [
    Forgery("a smaller epsilon in the privacy record", "privacy", KINDS,
            edited("privacy.json", lambda p: p.update(BETTER))),
    Forgery("a smaller rho in the privacy record", "privacy", KINDS,
            edited("privacy.json", lambda p: p.update(rho="1/100"))),
    Forgery("another guarantee in words", "privacy", (*KINDS, "spine"),
            edited("privacy.json", lambda p: p.update(guarantee=["Nothing to fear."]))),
    Forgery("an attacker who learns less", "privacy", KINDS,
            edited("privacy.json", lambda p: p.update(attacker=p["attacker"][:1]))),
    Forgery("a smaller budget throughout, over the same noise", "planned",
            ("counts", "another method"), retold(stated_rho("1/2"), planned_rho("1/2"))),
    Forgery("a smaller budget and more noise in the plan, over the same measurements", "planned",
            ("counts", "flows"), retold(stated_rho("1/2"), noisier)),
    Forgery("a smaller budget in the spec alone", "planned", (*KINDS, "spine"),
            respecified(stated_rho("1/2"))),
    Forgery("another relation of neighbours throughout, over the same noise", "planned",
            ("group sizes",),
            retold(privacy_of_spec(neighbours="add_remove"), protection(neighbours="add_remove"))),
    Forgery("more records of each unit throughout, over the same noise", "planned",
            ("counts", "spine"),
            retold(privacy_of_spec(max_contribution=3), protection(max_contribution=3))),
    Forgery("another unit in the spec alone", "planned", (*KINDS, "areas"),
            respecified(privacy_of_spec(unit="household"))),
    Forgery("a restriction that is not told", "planned", ("exact totals",),
            retold(nothing, protection(within=None))),
    Forgery("exact totals that are not told", "planned", ("exact totals",),
            edited("plan.json", lambda p: p.update(unprotected_totals=["nation"]))),
    Forgery("shares of the budget exchanged", "planned", ("counts", "histograms", "flows"),
            edited("plan.json", lambda p: p["queries"][-1].update(share="1/7"))),
    Forgery("a method that was not used", "linear_estimates", ("counts", "areas"),
            retold(lambda s: s["estimate"].update(method="topdown"),
                   lambda p: p.update(method="topdown"))),
    Forgery("another confidence in spec, plan and documents", "intervals", ("areas",),
            with_another_confidence),
    Forgery("a forecast of smaller errors", "forecast", ("counts", "spine", "group sizes"),
            retold(nothing, lambda p: p["expected_standard_errors"][-1].update(median=0.01))),
    Forgery("a forecast of smaller errors of flows", "own_noise", ("flows",),
            retold(nothing, lambda p: p["expected_standard_errors"][-1].update(median=0.01))),
    Forgery("a registry record of another unit", "deployment", KINDS,
            replaced("deployment.yaml", "privacy_unit: ", "privacy_unit: every ")),
    Forgery("a kinder reading guide", "guide", (*KINDS, "areas"),
            replaced("release/README.md", "\n\n", "\n\nThese counts are exact.\n\n")),
    Forgery("a kinder report", "report", (*KINDS, "spine"),
            replaced("report/index.html", "</h1>", "</h1><p>These counts are exact.</p>")),
    Forgery("a table described as something else", "data_package", KINDS,
            edited("release/datapackage.json", lambda p: p["resources"][0].update(title="True"))),
    Forgery("another run's name", "identity", KINDS,
            edited("run.json", lambda r: r.update(run_id="0" * 32))),
    Forgery("an older format in the plan alone", "identity", ("counts", "flows"),
            edited("plan.json", lambda p: p.update(format=2))),
    Forgery("a format that there never was", "planned", ("counts",),
            edited("plan.json", lambda p: p.update(format=0))),
    Forgery("an older format throughout", REDUCED, ("counts", "histograms", "spine"),
            in_older_format),
    Forgery("an older format throughout, with false documents", REDUCED, ("counts",),
            in_older_format_with_lies),
    Forgery("another version of Trellis", REDUCED, KINDS, of_another_version),
    Forgery("a poor fit as an excuse", REDUCED, ("histograms",), with_an_excuse),
    Forgery("a notice of withdrawal in other words", "withdrawn", ("withdrawn",),
            edited("withdrawn.json", lambda n: n.update(notice="All is well."))),
    Forgery("a notice of withdrawal with another reason", "withdrawn", ("withdrawn",),
            edited("withdrawn.json", lambda n: n.update(reason="None."))),
]  # fmt: skip
