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

from trellis.errors import TrellisError

if TYPE_CHECKING:
    from trellis.workflow.config import Spec

SpecPath = Annotated[Path, typer.Argument(metavar="SPEC", help="The spec, a YAML file.")]
RunPath = Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say only what was asked for.")]

MOST_CHARACTERS = 800
"""Of an error."""

BAD_INPUT, BROKEN_PROMISE, INTERRUPTED = 2, 1, 130


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

    def say_bindings(self, spec: Spec) -> None:
        """What binds the records because the spec does not say."""
        from trellis.workflow.config.requirements import unsaid_bindings

        for line in unsaid_bindings(spec):
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
        """The same; on a terminal, somebody is there to decide."""
        self.advise(text)
        if is_attended() and not typer.confirm("Go on?", err=True):
            raise TrellisError("Stopped. Nothing was spent.")

    def faults(self, error: TrellisError) -> None:
        """All that an error holds, a line each."""
        for fault in error.faults:
            typer.echo("error: " + one_line(fault), err=True)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """A spinner on a terminal, a line elsewhere. No durations: they may tell about records."""
        if self.quiet:
            yield
        elif self._err.is_terminal:
            with self._err.status(f"{name} ..."):
                yield
            self._err.print(Text(f"{name}: done"))
        else:
            self._err.print(Text(f"{name} ..."))
            yield


def is_attended() -> bool:
    """Whether somebody is there to answer."""
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
            typer.echo("error: " + one_line(str(error)), err=True)
            raise typer.Exit(BAD_INPUT) from None
        except KeyboardInterrupt:
            typer.echo("Interrupted. The same command goes on where this one stopped.", err=True)
            raise typer.Exit(INTERRUPTED) from None

    return wrapped
