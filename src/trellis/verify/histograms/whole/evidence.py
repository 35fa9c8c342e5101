"""What families of histograms are fitted to: J and b of their children, made from the measurements.

The counts of a level are fitted to its own measurements, or, with a method that looks below, to the
linear estimates of subtrees; the subtree of a leaf is the leaf.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from trellis.verify.files.histogram_files import Marginal, marginal
from trellis.verify.files.run_files import RunFiles
from trellis.verify.histograms.facts import group_of
from trellis.verify.histograms.linear.components import asked, subsets
from trellis.verify.histograms.linear.noisy_answers import blocks, noisy_queries, values_in_order
from trellis.verify.histograms.linear.solving import Component, Linear, Solved
from trellis.verify.histograms.measurements import decisive_levels, used_rows


class Evidence(Protocol):
    """On one level."""

    weights: dict[str, float]
    """Of queries that were measured there; empty where fits are to subtrees."""
    queries: dict[str, Marginal]

    def of(self, nodes: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """J, nodes x cells x cells, and b, nodes x cells."""
        ...

    def of_query(self, nodes: np.ndarray, query: Marginal) -> tuple[np.ndarray, np.ndarray]:
        """The same of the answers to a query, from what is known of them alone."""
        ...


class OwnMeasurements:
    """Of some nodes of a level, which are read at once."""

    def __init__(self, run: RunFiles, index: int, nodes: np.ndarray) -> None:
        noisy = [q for q in noisy_queries(run) if q.index == index and not q.is_exact]
        self.weights = {q.name: 1 / q.variance for q in noisy}
        self.queries = {q.name: marginal(run.plan, q.name) for q in noisy}
        self._place = np.full(len(run.levels[index]), -1)
        self._place[nodes] = np.arange(nodes.size)
        self._values = {}
        is_used = 0 < index <= decisive_levels(run)
        for query in noisy:
            width = self.queries[query.name].width
            values = np.zeros((nodes.size, width))
            if is_used:
                rows = used_rows(run, index, self.queries[query.name])
                flat = values_in_order(run, query)
                area, cell = rows.between(0, rows.number)
                chosen = self._place[area] >= 0
                values[self._place[area[chosen]], cell[chosen]] = flat[chosen]
            else:
                for cut, block in blocks(run, query):
                    place = self._place[cut]
                    values[place[place >= 0]] = block[place >= 0]
            self._values[query.name] = values

    def of(self, nodes: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        precision, linear = np.zeros((cells.size,) * 2), np.zeros((nodes.size, cells.size))
        for name, weight in self.weights.items():
            own = self.queries[name].cell_of[cells]
            precision += weight * (own[:, np.newaxis] == own)
            linear += weight * self._values[name][self._place[nodes]][:, own]
        return np.repeat(precision[np.newaxis], nodes.size, axis=0), linear

    def of_query(self, nodes: np.ndarray, query: Marginal) -> tuple[np.ndarray, np.ndarray]:
        precision, linear = np.zeros((query.width,) * 2), np.zeros((nodes.size, query.width))
        for name, weight in self.weights.items():
            own = group_of(query, self.queries[name])
            if own is not None:
                precision += weight * (own[:, np.newaxis] == own)
                linear += weight * self._values[name][self._place[nodes]][:, own]
        return np.repeat(precision[np.newaxis], nodes.size, axis=0), linear


class Subtrees:
    """The linear estimates from what was measured on a level and below it."""

    def __init__(
        self, run: RunFiles, linear: Linear, solved: dict[Component, Solved], index: int
    ) -> None:
        self._plan, n_nodes = run.plan, len(run.levels[index])
        self.weights: dict[str, float] = {}
        self.queries: dict[str, Marginal] = {}
        self._linear, self._solved, self._index = linear, solved, index
        self._place = np.full(n_nodes, -1)
        self._place[linear.kept[index]] = np.arange(linear.kept[index].size)
        self._values: dict[Component, np.ndarray] = {}
        self._inverses: dict[Component, np.ndarray] = {}
        self._precisions: dict[tuple[int, bytes], np.ndarray] = {}

    def of(self, nodes: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        place = self._place[nodes]
        classes = self._linear.shapes.below[self._index][place]
        components, slopes, found = self._linear.components, {}, {}
        for chosen in self._solved:
            every = self._precisions_of(chosen)
            parts = self._vectors(chosen, place)
            slopes[chosen] = np.array([every[k] @ v for k, v in zip(classes, parts, strict=True)])
        for k in np.unique(classes):
            here = {chosen: self._precisions_of(chosen)[k] for chosen in self._solved}
            found[k] = components.between_cells(here, cells)
        return np.array([found[k] for k in classes]), components.slopes(slopes)[:, cells]

    def of_query(self, nodes: np.ndarray, query: Marginal) -> tuple[np.ndarray, np.ndarray]:
        answers = np.zeros((nodes.size, query.width))
        np.add.at(answers.T, query.cell_of, self._estimates(nodes).T)
        classes = self._linear.shapes.below[self._index][self._place[nodes]]
        precision = np.array([self._precision(int(k), query) for k in classes])
        return precision, np.einsum("cab,cb->ca", precision, answers, optimize=True)

    def _estimates(self, nodes: np.ndarray) -> np.ndarray:
        parts = {chosen: self._vectors(chosen, self._place[nodes]) for chosen in self._solved}
        return self._linear.components.joined(parts)

    def _vectors(self, chosen: Component, place: np.ndarray) -> np.ndarray:
        """The estimates of a component: nodes x atoms x contrasts."""
        if chosen not in self._values:
            one = self._solved[chosen]
            self._values[chosen] = one.up[self._index].vectors(one.levels[self._index].total)
        return self._values[chosen][place]

    def _precisions_of(self, chosen: Component) -> np.ndarray:
        """Between the atoms of a component, by class of subtree."""
        if chosen not in self._inverses:
            up = self._solved[chosen].up[self._index]
            self._inverses[chosen] = up.basis @ np.linalg.inv(up.covariance) @ up.basis.T
        return self._inverses[chosen]

    def _precision(self, which: int, query: Marginal) -> np.ndarray:
        """Of the answers to a query; any weight where they are exact."""
        key = which, query.cell_of.tobytes()
        if key not in self._precisions:
            own = asked(self._plan, " * ".join(query.names) or "total")
            parts = {}
            for chosen in subsets(list(self._solved), own):
                up = self._solved[chosen].up[self._index]
                matrix, _ = self._linear.components.rows(own, chosen)
                part = matrix @ up.basis
                parts[chosen] = part @ up.covariance[which] @ part.T
            covariance = self._linear.components.between_answers(own, parts)
            values, vectors = np.linalg.eigh(covariance)
            varies = values > 1e-9 * max(values[-1], 1e-300)
            weights = 1 / np.where(varies, values, values[-1] if varies.any() else 1.0)
            self._precisions[key] = (vectors * weights) @ vectors.T
        return self._precisions[key]

    def has(self, nodes: np.ndarray) -> np.ndarray:
        """Which nodes may hold anyone."""
        return self._place[nodes] >= 0
