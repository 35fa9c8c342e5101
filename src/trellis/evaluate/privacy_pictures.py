"""The guarantee as pictures."""

from __future__ import annotations

import numpy as np

from trellis.evaluate.charts import Axis, Series, line_chart
from trellis.privacy.accounting import PrivacyCurve

DELTAS = np.logspace(-14, -2, 61)
ALPHAS = np.linspace(0, 1, 101)


def privacy_curve(accountant: PrivacyCurve) -> str:
    """Epsilon at every delta: exact, and what zero-concentrated DP alone would say."""
    exact = accountant.epsilon_curve(DELTAS)[1]
    zcdp = [accountant.epsilon_zcdp(float(delta)) for delta in DELTAS]
    lines = [Series("exact", DELTAS.tolist(), exact.tolist()),
             Series("zCDP bound", DELTAS.tolist(), zcdp)]  # fmt: skip
    return line_chart("Privacy curve", Axis("delta", log=True), Axis("epsilon"), lines)


def tradeoff_curve(accountant: PrivacyCurve) -> str:
    """Missed detections of the best attack at every rate of false alarms."""
    missed = accountant.tradeoff_curve(ALPHAS)[0]
    lines = [Series("best attack", ALPHAS.tolist(), missed.tolist()),
             Series("guessing", [0.0, 1.0], [1.0, 0.0])]  # fmt: skip
    return line_chart(
        "Trade-off of any attack", Axis("false alarms"), Axis("missed detections"), lines
    )
