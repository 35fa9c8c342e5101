"""What a release says about its privacy, in `privacy.json` and wherever that is quoted."""

from __future__ import annotations

# -- who is protected -----------------------------------------------------------------------------

ONE_RECORD = "the one record of a {unit}"
ALL_RECORDS = "all records (at most {most}) of a {unit}"
PRESENCE = "The presence of {records} is protected: whether in the data or not."
CONTENT = "The content of {records} is protected: any values against any others."
NUMBER_IS_KNOWN = "The number of these records is not protected."

WITHIN = (
    "Totals of level {level!r} are published exactly, so only changes that stay inside the same "
    "area of that level are protected."
)
REQUIRED = (
    "The records must keep {what}, or nothing is released: it is public that they do, and only "
    "changes that keep it are protected."
)
NOT_KNOWN = "what was required of them at the time, which is not recorded here"
"""Stands for `what` in statements that were written before requirements were recorded."""

# -- how well -------------------------------------------------------------------------------------

PURE = (
    "Whatever is computed from this release, its probability differs between any two such data "
    "sets by a factor of at most exp({epsilon}) (pure differential privacy)."
)
APPROXIMATE = (
    "The release satisfies ({epsilon}, {delta})-differential privacy, {how}, and zero-concentrated "
    "differential privacy with rho = {rho}."
)
EXACTLY = "computed exactly for its noise"
BOUNDED = "a safe bound"
USUAL_DELTA = "1e-10"
"""Where the guarantee is stated when the budget names no delta."""
DELTAS = ("1e-6", "1e-10", "1e-12")
"""Where epsilon is stated then."""

# -- what is not protected ------------------------------------------------------------------------

PUBLIC_LISTS = "The list of areas and categories{rules} is public and not protected."
PUBLIC_RULES = ", rules and bounds"
EXACT_TOTALS = "Totals of level(s) {levels} are published exactly and are not protected."
REGISTER = (
    "The register of groups is public and not protected: which groups exist, and in which area. "
    "Numbers of groups of level(s) {levels} are exact."
)
LARGEST_SIZE = "The list of areas and the largest size, {most}, are public and not protected."
MEASURED_IN_PART = (
    "Numbers that no estimate uses were not measured. Noisy results of the levels above alone "
    "decided which these are, so what was published is as private as all numbers together."
)

# -- what must be true for it ---------------------------------------------------------------------

AT_MOST = "This holds if no {unit} has more than {most} record(s) in the data"
JUST_AS_MANY = "This holds if no {unit} has more or fewer than {most} record(s) in the data"
NOTHING_ELSE = "{bound}."
FLOW_LISTS = "{bound}{distinct} and if the lists of areas were not made from the records."
DISTINCT = ", no two of them between the same pair of areas,"
SIZE_LISTS = (
    "{bound}, each of which adds at most {quantity} to the size of one group, and if the register "
    "of groups and the largest size were not made from the records."
)
SEVERAL = (
    "Several releases of the same records add up; the ledger adds up those that are entered in it."
)

# -- what an attacker can learn -------------------------------------------------------------------

ATTACK = (
    "With {false_alarms:g} % false alarms, an attack detects at most {detected:g} % of true "
    "suspicions; a suspicion held with {prior:g} % belief becomes at most {right:g} % after an "
    "alarm."
)
PRIOR_PERCENT = "10"
FALSE_ALARMS_PERCENT = ("5", "1", "0.1")
RESTRICTED = (
    "This compares two possibilities for one record that both keep what is required of the "
    "records; the release rules out a possibility that does not."
)

# -- smaller changes ------------------------------------------------------------------------------

LOCATION = "location only, within one area of level {level}"
LOCATION_IN_WORDS = (
    "A change of location only, within an area, costs only the levels below it; if attributes "
    "change too, every level pays."
)
ATTRIBUTE = "{attribute} only"
ATTRIBUTE_IN_WORDS = (
    "A change of one attribute only costs, on all levels of one path, two cells in each query "
    "that separates the two values."
)
STILL_KEPT = " This covers only changes that keep what is required of the records."
MANY_CHARGES = 20
"""From here on, smaller changes are stated by a safe bound in place of the exact curve."""
