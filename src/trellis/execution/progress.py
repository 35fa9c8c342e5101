"""How far the work of a stage has come: loops tell, and whoever shows it listens.

Loops deep inside a stage say how many of their parts are done; the loops around them know which
part of the stage that is. So nothing is passed from hand to hand, and without a listener nothing
happens. Only public facts may decide what is told: levels, queries, areas, tables. Before and while
noise is drawn no loop over families tells (`in_parts(..., inner=False)`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import local
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Tell = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class _Span:
    """A part of a stage, from `begin` to `end` of the whole."""

    tell: Tell
    begin: float = 0.0
    end: float = 1.0

    def at(self, share: float) -> float:
        return self.begin + share * (self.end - self.begin)

    def part(self, begin: float, end: float) -> _Span:
        return _Span(self.tell, self.at(begin), self.at(end))


@dataclass(slots=True)
class _Pieces:
    """How much of a map is done, as the calls of its function tell; threads share it."""

    tell: Tell
    done: float = 0.0

    def add(self, share: float) -> None:
        self.done += share
        self.tell(min(self.done, 1.0))


class _Here(local):
    """Each thread has its own: those of a pool tell nothing by themselves."""

    span: _Span | None = None
    pieces: _Pieces | None = None


_here = _Here()


@contextmanager
def listening(tell: Tell) -> Iterator[None]:
    """`tell` hears which share of the work inside, between 0 and 1, is done."""
    was, _here.span = _here.span, _Span(tell)
    try:
        yield
    finally:
        _here.span = was


@contextmanager
def part(begin: float, end: float) -> Iterator[None]:
    """What is inside goes from `begin` to `end` of the work around it."""
    was = _here.span
    _here.span = None if was is None else was.part(begin, end)
    try:
        yield
    finally:
        _here.span = was
    tell_done(end)


def tell_done(share: float) -> None:
    """This share of the work here is done."""
    told_from_here()(share)


def told_from_here() -> Tell:
    """`tell_done` as it is here, for a thread that is told nothing of its surroundings."""
    span = _here.span
    return (lambda _: None) if span is None else (lambda share: span.tell(span.at(share)))


def tell_more(share: float) -> None:
    """This much more is done of the map that this is called from.

    A map in other processes does not hear it, and tells of complete runs alone.
    """
    if _here.pieces is not None:
        _here.pieces.add(share)


def pieces_here(work: Callable[..., Result]) -> Callable[..., Result]:
    """The same function for a map that begins here: it hears what calls tell, in any thread."""
    pieces = _Pieces(told_from_here())

    def heard(*args: object) -> Result:
        around, _here.pieces = _here.pieces, pieces
        try:
            return work(*args)
        finally:
            _here.pieces = around

    return heard


def in_parts(
    items: Iterable[Item], work: Sequence[float] | None = None, *, inner: bool = True
) -> Iterator[Item]:
    """The items, each a part of the work here, of equal size or in proportion to `work`.

    Without `inner`, only complete items are told of.
    """
    items = list(items)
    sizes = [1.0] * len(items) if work is None else list(work)
    total, done, around = sum(sizes) or 1.0, 0.0, _here.span
    for item, size in zip(items, sizes, strict=True):
        begin, done = done, done + size
        if around is not None:
            _here.span = around.part(begin / total, done / total) if inner else None
        try:
            yield item
        finally:
            _here.span = around
        tell_done(done / total)
