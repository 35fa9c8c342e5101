"""Whether the first line of a table names its columns, or is a record.

In a file without a header the first record takes the place of the names, which are shown and
written to files. So names of confidential columns are trusted only if the rows below differ from
them in kind. Nothing else about the rows is revealed.
"""

from __future__ import annotations

from collections.abc import Sequence

Column = Sequence[str | None]

_MANY, _FEW_KINDS = 20, 5


def is_header(names: Sequence[str], columns: Sequence[Column]) -> bool | None:
    """True for names, False for a record; None if nothing tells."""
    if not all(map(could_be_name, names)):
        return False
    if any(name in values for name, values in zip(names, columns, strict=True)):
        return False
    return any(map(_stands_out, names, columns)) or None


def could_be_name(name: str) -> bool:
    """Neither empty nor a number."""
    try:
        float(name)
    except ValueError:
        return bool(name.strip())
    return False


def _stands_out(name: str, values: Column) -> bool:
    """Whether a name is unlike everything below it."""
    texts = [value for value in values if value]
    if not texts:
        return False
    if not any(map(could_be_name, texts)):
        return True
    if all(map(_has_digit, texts)) and not _has_digit(name):
        return True
    if len(texts) < _MANY:
        return False
    lengths = {len(text) for text in texts}
    return len(set(texts)) <= _FEW_KINDS or (len(lengths) == 1 and len(name) not in lengths)


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))
