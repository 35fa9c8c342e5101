"""Random trees of areas, ragged ones among them, as the CSV file that a spec names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from random import Random

LEVEL_NAMES = ("nation", "state", "county", "town", "total", "level", "query")


@dataclass(frozen=True)
class RandomTree:
    """Paths from the root to the leaves; a ragged one ends before the last level."""

    levels: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]

    @cached_property
    def _path_of(self) -> Mapping[str, tuple[str, ...]]:
        return {path[-1]: path for path in self.paths}

    @property
    def leaves(self) -> list[str]:
        return list(self._path_of)

    def above(self, leaf: str, level: str) -> str:
        """The area of a level that a leaf lies in; itself, where its path ends earlier."""
        path = self._path_of[leaf]
        return path[min(self.levels.index(level), len(path) - 1)]

    @property
    def csv(self) -> str:
        width = len(self.levels)
        rows = [(*path, *[""] * (width - len(path))) for path in self.paths]
        return "\n".join([",".join(self.levels), *map(",".join, rows)]) + "\n"


def draw_tree(chance: Random, depth: tuple[int, int] = (2, 4), most: int = 7) -> RandomTree:
    """A tree with at most so many leaves; deep ones are likelier, about a third are ragged."""
    n_levels = max(chance.randint(*depth), chance.randint(*depth))
    levels = tuple(chance.sample(LEVEL_NAMES[:4], n_levels))
    ragged = chance.random() < 0.35 and n_levels > 2
    paths: list[tuple[str, ...]] = [("r",)]
    for level in range(1, n_levels):
        grown: list[tuple[str, ...]] = []
        for i, path in enumerate(paths):
            ended = len(path) < level
            room = most - len(grown) - (len(paths) - i)
            if ended or (ragged and level > 1 and i and chance.random() < 0.3):
                grown.append(path)
                continue
            children = max(1, min(chance.choice((1, 2, 2, 3)), room + 1))
            letters = "abcd"[:children]
            grown += [(*path, f"{'' if path[-1] == 'r' else path[-1]}{x}") for x in letters]
        paths = grown
    if all(len(path) < n_levels for path in paths):
        paths[0] = (*paths[0], f"{paths[0][-1]}a")
    return RandomTree(levels, tuple(paths))


def draw_places(chance: Random, tree: RandomTree) -> str:
    """Areas of interest: a file that puts some leaves into places."""
    rows = [f"{leaf},{chance.choice('PQ')}" for leaf in tree.leaves if chance.random() < 0.7]
    return "\n".join(["leaf,place", *(rows or [f"{tree.leaves[0]},P"])]) + "\n"


def draw_exact_level(chance: Random, tree: RandomTree) -> str:
    """A level above the leaves, the lower the likelier: there exact totals restrict more."""
    above = tree.levels[:-1]
    return chance.choice((*above, *above[1:] * 3, above[-1]))
