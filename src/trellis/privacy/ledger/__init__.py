"""What has been spent on each data set, and what may be."""

from trellis.privacy.ledger.account import Account, Cost, Total
from trellis.privacy.ledger.entries import Claim, Entry
from trellis.privacy.ledger.file import Ledger
from trellis.privacy.ledger.rules import Terms

__all__ = ["Account", "Claim", "Cost", "Entry", "Ledger", "Terms", "Total"]
