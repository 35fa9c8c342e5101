"""`estimates/fit.json`: how far whole counts may be from the best fit. Yields what is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import load_json
from trellis.wording.guides import USUAL_FIT

NAME = "estimates/fit.json"


def fit(run: RunFiles) -> Iterator[str]:
    """The stated distance to the best fit is a number, next to the usual tolerance."""
    content = load_json(run.path, NAME)
    distance = content["distance"]
    if content != {"distance": distance, "tolerance": USUAL_FIT}:
        yield f"{NAME} has other keys, or another tolerance, than a run writes"
    if type(distance) is not float or not math.isfinite(distance) or distance < 0:
        yield f"{NAME} does not state a distance"
    elif distance > USUAL_FIT:
        run.leave_out(f"{NAME} states a poor fit, and whole counts have that much room")
