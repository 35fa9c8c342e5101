"""Which run folders say what they say in words that are known here."""

from __future__ import annotations

from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import FORMAT, Unreadable
from trellis.wording.kinds import KINDS


def has_todays_words(run: RunFiles, name: str) -> bool:
    """Whether a document can be made again word for word; if not, that is noted."""
    number = run.plan.get("format", 1)
    if number < FORMAT:
        run.leave_out(f"sentences of {name} were not compared: the run has format {number}")
    return number == FORMAT


def require_known_kind(run: RunFiles) -> None:
    """Fail for a kind of release whose words are not known."""
    if run.plan["kind"] not in KINDS:
        raise Unreadable("this kind of release is not known here, so nothing vouches for its words")
