"""Ctrl-C ends a command within seconds, whatever it is doing.

The first Ctrl-C raises KeyboardInterrupt, as always, and what is under way cleans up. That is not
enough: compiled code does not look at interrupts, a pool waits for its threads, and an interrupt
that is raised inside a callback from C, as LLVM makes them, is swallowed. So a thread listens too,
and leaves at once if the command is still there after two seconds, or at the second Ctrl-C. A run
folder and a ledger can be left at any time (`docs/decisions/0003-ledger-charge-claim-settle.md`).
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from select import select
from threading import Thread
from typing import Any, NoReturn

INTERRUPTED = 130
STOPPED = "Stopped. Run the same command again to continue."

PATIENCE = 2.0
"""Seconds for running work to end in order."""

_said: list[str] = []
_SHOW_CURSOR = "\x1b[?25h\n"  # where a bar was being drawn


def stopped() -> str:
    """The line to print, once; whoever leaves afterwards prints nothing."""
    _said.append(STOPPED)
    return STOPPED


def end_in_time(patience: float = PATIENCE) -> None:
    """From now on, Ctrl-C ends this process; call it once, from the main thread."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells ask of background jobs
        return
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    asked: list[int] = []

    def interrupt(number: int, _frame: object) -> None:
        asked.append(number)
        if len(asked) == 1:  # the listener handles the others
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    was = sys.unraisablehook

    def swallowed(raised: Any) -> None:
        if issubclass(raised.exc_type, KeyboardInterrupt):
            leave()
        was(raised)

    sys.unraisablehook = swallowed
    Thread(target=_listen, args=(heard, patience), daemon=True, name="interrupts").start()


def leave() -> NoReturn:
    """End this process now, with one line if none was printed."""
    words = (_SHOW_CURSOR if os.isatty(2) else "") + ("" if _said else f"{STOPPED}\n")
    with suppress(OSError):
        os.set_blocking(2, False)  # perhaps no one is reading
        os.write(2, words.encode())
    os._exit(INTERRUPTED)


def _listen(heard: int, patience: float) -> None:
    while os.read(heard, 1) != bytes([signal.SIGINT]):
        pass
    select([heard], [], [], patience)
    leave()
