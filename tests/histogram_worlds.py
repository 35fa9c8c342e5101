"""Small histograms on trees, with answers of known noise."""

from __future__ import annotations

import numpy as np

from trellis.estimate.histograms.evidence import EvidenceInMemory
from trellis.model import Hierarchy, Schema
from trellis.model.tables.queries import parse_query
from trellis.model.tables.schema import Recode

SCHEMA = Schema(
    {"a": list("1234"), "b": ["x", "y", "z"]},
    {
        "three": Recode("a", {"l": ["1"], "m": ["2", "3"], "h": ["4"]}),
        "two": Recode("a", {"l": ["1"], "m": ["2", "3", "4"]}),
        "ends": Recode("b", {"outer": ["x", "z"], "inner": ["y"]}),
    },
)
NAMES = ["total", "a", "b", "three", "two * b", "three * ends", "ends", "detailed"]
TREE = Hierarchy.from_paths(
    [
        ("r", str(i), f"{i}{j}", f"{i}{j}{k}")
        for i in range(3)
        for j in range(i + 1)
        for k in range(5)
    ],
    ("nation", "state", "county", "block"),
)


def finals_by_level(best, last_level):
    """The final estimates of all nodes down to a level: cells x nodes."""
    out = [best.subtree_of(0, 0, 1)]
    for level in range(1, last_level + 1):
        out.append(best.final(level, out[-1], 0, out[-1].shape[1]))
    return out


def evidence(tree, measured, rng, scale=4.0, whole=True):
    """Truth by level, and evidence with rounded normal noise of the stated variances."""
    truth = tree.sum_up(rng.poisson(scale * rng.random((tree.sizes[-1], SCHEMA.n_cells))))
    answers = []
    for level, queries in enumerate(measured):
        noisy = {}
        for name, variance in queries.items():
            true = parse_query(SCHEMA, name).answer(truth[level])
            noise = rng.normal(0, np.sqrt(variance), true.shape) if 0 < variance < np.inf else 0
            noisy[name] = true + (np.rint(noise).astype(int) if whole else noise)
        answers.append(noisy)
    return truth, EvidenceInMemory(tree, SCHEMA, measured, answers)
