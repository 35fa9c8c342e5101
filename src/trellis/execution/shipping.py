"""Tasks on their way to other processes: a pickle, and then the bytes of its arrays.

Arrays are mapped from the file, each process with its own copy on writing: a task is read once by
each process, however many runs it is called for.
"""

from __future__ import annotations

import io
import mmap
import pickle
from pathlib import Path
from typing import Any

from trellis.errors import StructureError

_ALIGNED = 64


class _Pickler(pickle.Pickler):
    """Refuses random bits: noise is drawn by the process that holds the claim, and by no other."""

    def persistent_id(self, obj: Any) -> None:
        if not isinstance(obj, type) and callable(getattr(obj, "words", None)):
            raise StructureError(
                f"A task holds random bits ({type(obj).__name__}). Noise is drawn in the process "
                "that holds the claim: use threads."
            )


def packed(value: object) -> bytes:
    """A value as one pickle."""
    stream = io.BytesIO()
    _Pickler(stream, 5).dump(value)
    return stream.getvalue()


def write_value(path: Path, value: object) -> None:
    """Head: the pickle and where each buffer lies; then the buffers."""
    stream, found = io.BytesIO(), list[pickle.PickleBuffer]()
    _Pickler(stream, 5, buffer_callback=found.append).dump(value)
    buffers = [buffer.raw() for buffer in found]
    head = pickle.dumps((stream.getvalue(), [(b.nbytes, b.readonly) for b in buffers]))
    with path.open("xb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for buffer in buffers:
            file.write(bytes(-file.tell() % _ALIGNED))
            file.write(buffer)


def read_value(path: Path) -> Any:
    """What was written. Arrays that could not be written to cannot be here either."""
    with path.open("rb") as file:
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    place = 8 + int.from_bytes(whole[:8], "little")
    value, sizes = pickle.loads(whole[8:place])  # noqa: S301  (written by the parent process)
    buffers = []
    for size, is_readonly in sizes:
        place += -place % _ALIGNED
        part = whole[place : place + size]
        buffers.append(part.toreadonly() if is_readonly else part)
        place += size
    return pickle.loads(value, buffers=buffers)  # noqa: S301
