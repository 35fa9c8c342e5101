"""What only the owner of the ledger can check: that these measurements are the ones paid for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

from trellis.errors import LedgerError
from trellis.privacy.ledger import Ledger
from trellis.privacy.ledger.entries import Withdrawal
from trellis.privacy.mechanisms import mechanism
from trellis.privacy.protection import NOT_KNOWN
from trellis.verify.documents.withdrawn import FILE
from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import digest, load_json
from trellis.verify.plan.price import highest_cost

FOLDER = "measurements/"


def against(path: Path) -> Callable[[RunFiles], Iterator[str]]:
    """The check of a run against the ledger at `path`."""
    if not path.is_file():
        raise LedgerError(f"There is no ledger at {path}. Name the one that paid for the run.")

    def ledger(run: RunFiles) -> Iterator[str]:
        """The ledger holds the charge of this plan, and the digest of these very measurements."""
        entry = Ledger(path).entry(run.identity["run_id"])
        if entry is None:
            yield "the ledger holds no charge of this run"
            return
        if entry.digest is None:
            yield "the ledger holds no digest: no measurements were finished for this charge"
        elif entry.digest != measurements_digest(run):
            yield "the measurements are not those that were paid for"
        plan, charged = run.plan, entry.guarantee
        if (entry.dataset, entry.release) != (plan["dataset"], plan["release"]):
            yield "the ledger has this charge for another data set or release"
        stated, protection = plan["protection"], charged.protection
        for key in ("unit", "neighbours", "max_contribution", "within"):
            if getattr(protection, key) != stated[key]:
                yield f"the ledger was charged for another {key} than plan.json states"
        required = list(protection.required)
        if required not in ([NOT_KNOWN], stated.get("required", [])):
            yield "the ledger was charged with other requirements than plan.json states"
        cost, kind = highest_cost(run)
        paid = charged.rho if kind == "rho" else charged.pure_epsilon
        if paid != cost:
            yield f"the plan costs {kind} = {cost}, and the ledger was charged {paid}"
        planned = [q["noise"] for q in plan["queries"] if q["noise"] is not None]
        noises = [mechanism(noise["law"], noise["parameter"]) for noise in planned]
        if Counter(noises) != Counter(charge.mechanism for charge in charged.charges):
            yield "the ledger was charged for other noise than plan.json states"
        if _notice(run) != entry.withdrawal:
            yield "the ledger and the folder do not agree on whether and why this was withdrawn"

    return ledger


def _notice(run: RunFiles) -> Withdrawal | None:
    """What the folder says about a withdrawal."""
    if FILE not in run.sizes:
        return None
    content = load_json(run.path, FILE)
    return Withdrawal(content["withdrawn"], content["reason"], content["superseded_by"])


def measurements_digest(run: RunFiles) -> str:
    """SHA-256 over name, size and content of every file, by folders and names."""
    found = sha256()
    inside = [name.removeprefix(FOLDER) for name in run.sizes if name.startswith(FOLDER)]
    for name in sorted(inside, key=lambda name: name.split("/")):
        found.update(f"{name}\0{run.sizes[FOLDER + name]}\0".encode())
        digest(run.path / FOLDER / name, found)
    return found.hexdigest()
