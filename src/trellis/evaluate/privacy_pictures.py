"""The guarantee as pictures."""

from __future__ import annotations

import numpy as np

from trellis.evaluate.charts import Axis, Series, line_chart
from trellis.privacy.accounting import PrivacyCurve
from trellis.wording import report as words

DELTAS = np.logspace(-14, -2, 61)
ALPHAS = np.linspace(0, 1, 101)


def privacy_curve(accountant: PrivacyCurve) -> str:
    """Epsilon at every delta: exact, and what zero-concentrated DP alone would say."""
    exact = accountant.epsilon_curve(DELTAS)[1]
    zcdp = [accountant.epsilon_zcdp(float(delta)) for delta in DELTAS]
    lines = [Series(words.EXACT_CURVE, DELTAS.tolist(), exact.tolist()),
             Series(words.ZCDP_CURVE, DELTAS.tolist(), zcdp)]  # fmt: skip
    return line_chart(words.PRIVACY_CURVE, Axis(words.DELTA, log=True), Axis(words.EPSILON), lines)


def tradeoff_curve(accountant: PrivacyCurve) -> str:
    """Missed detections of the best attack at every rate of false alarms."""
    missed = accountant.tradeoff_curve(ALPHAS)[0]
    lines = [Series(words.BEST_ATTACK, ALPHAS.tolist(), missed.tolist()),
             Series(words.GUESSING, [0.0, 1.0], [1.0, 0.0])]  # fmt: skip
    return line_chart(words.TRADE_OFF, Axis(words.FALSE_ALARMS), Axis(words.MISSED), lines)
