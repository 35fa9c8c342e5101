"""What stands at the head of a release that was withdrawn."""

from __future__ import annotations

NOTICE = "This release was withdrawn on {day}.{why}{instead} What was spent on it stays spent."
WHY = " Reason: {reason}."
INSTEAD = " Use release {release} (run {run_id}) instead."
