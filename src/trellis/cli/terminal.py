"""What the command line says, and how it fails."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trellis.cli.interrupts import INTERRUPTED, stopped
from trellis.errors import TrellisError
from trellis.execution.progress import listening

if TYPE_CHECKING:
    from trellis.spec import Spec

SpecPath = Annotated[Path, typer.Argument(metavar="SPEC", help="The spec, a YAML file.")]
RunPath = Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only what you asked for.")]

MOST_CHARACTERS = 800
"""Of an error."""

MOST_FAULTS = 100
"""That are printed, a line each."""

BAD_INPUT, BROKEN_PROMISE = 2, 1


class Terminal:
    """Results go to standard output, progress and errors to standard error."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self._out = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
        self._err = Console(stderr=True, highlight=False, soft_wrap=True)

    def hushed(self, quiet: bool) -> Terminal:
        """The same, quiet if either says so."""
        return Terminal(quiet=quiet or self.quiet)

    def say(self, text: str = "") -> None:
        """Something good to know, left out when quiet."""
        if not self.quiet:
            self._out.print(Text(text))

    def say_fit(self, distance: float | None) -> None:
        """How far a family may be from its best fit, where that is more than usual."""
        if distance is not None:
            self.say(
                f"Some counts may be {distance:.2g} (root mean square of a family) away from the "
                "best fit: the solver stopped early. See release/README.md."
            )

    def say_notes(self, spec: Spec) -> None:
        """Old spellings, and what the spec leaves unsaid."""
        for line in spec.notes:
            self.say(line)

    def advise(self, text: str) -> None:
        """Something to think over before it is too late: said even when quiet."""
        self._err.print(Text("warning: " + one_line(text)))

    def result(self, text: str) -> None:
        """What was asked for."""
        self._out.print(Text(text))

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Numbers to the right, the first column to the left."""
        table = Table(title=title, title_justify="left", header_style="bold")
        for i, column in enumerate(columns):
            table.add_column(column, justify="left" if i == 0 else "right", overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        self._out.print(table)

    def confirm(self, text: str) -> None:
        """The same; on a terminal, someone is there to decide."""
        self.advise(text)
        if is_attended() and not typer.confirm("Go on?", err=True):
            raise TrellisError("Stopped. Nothing was spent.")

    def faults(self, error: TrellisError) -> None:
        """All that an error holds, a line each, up to what someone would read."""
        for fault in error.faults[:MOST_FAULTS]:
            typer.echo("error: " + one_line(fault), err=True)
        if (more := len(error.faults) - MOST_FAULTS) > 0:
            typer.echo(f"error: {more} more to put right", err=True)

    @contextmanager
    def stage(self, name: str, *, line: bool = True) -> Iterator[None]:
        """A bar with per cent on a terminal, a line elsewhere, unless there should be none.

        No durations: they may tell about records.
        """
        if self.quiet:
            yield
        elif self._err.is_terminal:
            with _bar(self._err, name) as tell, listening(tell):
                yield
            if line:
                self._err.print(Text(f"{name}: done"))
        else:
            if line:
                self._err.print(Text(f"{name} ..."))
            yield


@contextmanager
def _bar(console: Console, name: str) -> Iterator[Callable[[float], None]]:
    """A bar that is gone afterwards; it shows per cent once there are some, and never less."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    columns = (
        SpinnerColumn(),
        TextColumn(name, markup=False),
        BarColumn(),
        TextColumn("{task.fields[share]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task, shown = bar.add_task("", total=None, share=""), -1

        def tell(share: float) -> None:
            nonlocal shown
            if (per_cent := int(100 * share)) > shown:  # loops tell far more often
                shown = per_cent
                bar.update(task, total=100, completed=shown, share=f"{shown} %")

        yield tell


def is_attended() -> bool:
    """Whether someone is there to answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def one_line(text: str) -> str:
    """Printable and not too long, whatever names are quoted in it."""
    printable = "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode()
        for c in " ".join(text.split())
    )
    if len(printable) <= MOST_CHARACTERS:
        return printable
    half = MOST_CHARACTERS // 2
    return f"{printable[:half]} ... {printable[-half:]}"


def reports_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """One line on standard error and a code for what the user can put right."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except TrellisError as error:
            typer.echo("error: " + one_line(error.on_command_line), err=True)
            raise typer.Exit(BAD_INPUT) from None
        except KeyboardInterrupt:
            typer.echo(stopped(), err=True)
            raise typer.Exit(INTERRUPTED) from None

    return wrapped
