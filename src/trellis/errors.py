"""Errors a user can act on.

Every message says what is wrong, where, and what to do next, on one line, and names nothing
confidential: columns, levels and public area codes may appear, counts and records never.
The command line catches `TrellisError` only; anything else is a defect and keeps its traceback.
"""

import re

_OPTION = re.compile(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)")
"""An option as messages write it."""


class TrellisError(Exception):
    """Base of all errors that the user can put right.

    It may hold several faults, each a line of its own; as text, it is the first of them.
    """

    def __init__(self, *faults: str) -> None:
        super().__init__(*faults)
        self.faults = faults

    @property
    def on_command_line(self) -> str:
        """The first fault, with options as they are typed there."""
        first, more = self.faults[0], len(self.faults) - 1
        return first if not more else f"{first} ({more} more to put right)"

    def __str__(self) -> str:
        """The same for Python, where an option is an argument."""
        return _OPTION.sub(lambda option: option[1].replace("-", "_"), self.on_command_line)


class ConfidentialWarning(UserWarning):
    """Something public looks like the records; only the operator can tell whether it is."""


class SpecError(TrellisError):
    """The spec, or something derived from it alone, cannot be carried out."""


class StructureError(TrellisError):
    """A hierarchy, schema or set of arrays is not well formed."""


class Infeasible(TrellisError):
    """Constraints that no table of whole numbers can keep."""


class InputError(TrellisError):
    """A source cannot be read, or does not fit the spec and the hierarchy."""


class SourceError(InputError):
    """A source is missing, unreadable or lacks a column; the text quotes nothing that is in it."""


class PrivacyError(TrellisError):
    """A mechanism or an accountant cannot do what was asked of it."""


class BudgetExceeded(PrivacyError):
    """The ledger's limit does not allow this release."""


class LedgerError(PrivacyError):
    """The ledger and the run do not agree."""


class RunFolderError(TrellisError):
    """A run folder does not hold what the command needs."""
