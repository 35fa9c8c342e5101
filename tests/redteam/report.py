"""What was tried, what was worst, what was found: a table, and every finding with its seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from textwrap import indent

from redteam.attack import Outcome
from redteam.unnoticed import spare


@dataclass
class Row:
    """All trials of one attack on one kind."""

    trials: int = 0
    tried: int = 0
    refused: int = 0
    worst: float | None = None
    seconds: float = 0.0
    found: int = 0


@dataclass
class Report:
    """Grows trial by trial."""

    rows: dict[tuple[str, str], Row] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    passed: Counter[str] = field(default_factory=Counter)
    mutations: list[str] = field(default_factory=list)
    missed: int = 0

    def add(self, attack: str, kind: str, seed: int, outcome: Outcome, seconds: float) -> None:
        row = self.rows.setdefault((attack, kind), Row())
        row.trials += 1
        row.tried += outcome.tried
        row.refused += not outcome.tried
        row.seconds += seconds
        row.found += bool(outcome.findings)
        if outcome.worst is not None:
            row.worst = max(row.worst or 0.0, outcome.worst)
        self.passed.update(outcome.notes)
        for what in outcome.findings:
            spec = f"\n{indent(outcome.spec.rstrip(), '      ')}" if outcome.spec else ""
            self.findings.append(f"{attack}:{kind}:{seed}\n    {what}{spec}")

    @property
    def is_clean(self) -> bool:
        return not self.findings and not self.missed

    def table(self) -> str:
        head = ("attack", "kind", "trials", "tried", "refused", "worst", "seconds", "findings")
        lines = [head]
        for (attack, kind), row in sorted(self.rows.items()):
            worst = "-" if row.worst is None else f"{row.worst:.4g}"
            numbers = (row.trials, row.tried, row.refused, worst, f"{row.seconds:.0f}", row.found)
            lines.append((attack, kind, *map(str, numbers)))
        return _aligned(lines)

    def text(self) -> str:
        parts = [self.table()]
        if self.passed:
            known = [f"  {n} x {what}" for what, n in self.passed.most_common()]
            known += [f"  not needed: {what}" for what in spare(self.passed)]
            parts.append("Known not to be noticed (redteam/unnoticed.py):\n" + "\n".join(known))
        if self.mutations:
            parts.append("Defects put back:\n" + "\n".join(self.mutations))
        if self.findings:
            parts.append("FINDINGS\n" + "\n".join(f"  {text}" for text in self.findings))
        parts.append(f"{len(self.findings)} findings, {self.missed} defects missed.")
        return "\n\n".join(parts)


def _aligned(lines: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(w) if i < 2 else cell.rjust(w)
                  for i, (cell, w) in enumerate(zip(line, widths, strict=True))).rstrip()
        for line in lines
    )  # fmt: skip
