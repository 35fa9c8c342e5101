"""The ledger: charged once, before any noise, and never beyond its limit."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from trellis.errors import BudgetExceeded, LedgerError
from trellis.privacy import Accountant
from trellis.privacy.budget import Budget
from trellis.privacy.guarantee import Charge, Guarantee
from trellis.privacy.ledger import Claim, Ledger, Terms
from trellis.privacy.ledger.account import Account, Cost
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection

REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE


def gaussian(rho, neighbours=ADD_REMOVE, unit="person") -> Guarantee:
    """A guarantee of exactly this rho."""
    protection = Protection(unit, neighbours, 1)
    sigma_squared = Fraction(protection.l2_squared) / (2 * Fraction(rho))
    return Guarantee(protection, (Charge("town: total", DiscreteGaussian(sigma_squared)),))


def laplace(epsilon, neighbours=ADD_REMOVE) -> Guarantee:
    protection = Protection("person", neighbours, 1)
    return Guarantee(
        protection, (Charge("town: total", DiscreteLaplace(protection.l1 / Fraction(epsilon))),)
    )


def rho(value) -> Budget:
    return Budget(rho=Fraction(value))


def epsilon(value) -> Budget:
    return Budget(epsilon=Fraction(value))


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


def charge(ledger, run, guarantee, *, dataset="data", print_="print", **spending) -> None:
    ledger.charge(dataset, run, "release", guarantee, Terms(**spending), print_)


def check(ledger, run, guarantee, print_=None, **spending) -> None:
    ledger.check("data", run, guarantee, Terms(**spending), print_)


def together(*guarantees, unit="person"):
    """The total of some releases for one unit."""
    return Account(tuple(Cost("release", guarantee) for guarantee in guarantees)).total(unit)


def spent_rho(ledger, dataset="data") -> Fraction:
    return sum((entry.guarantee.rho for entry in ledger.entries(dataset)), Fraction(0))


# -- charging -------------------------------------------------------------------------------------


def test_a_charge_is_entered_exactly_as_it_was_made(ledger):
    awkward = Guarantee(
        Protection("household ü", REPLACE, 3, within="state"),
        (
            Charge("county: total", DiscreteGaussian(Fraction(10**30 + 1, 7))),
            Charge("block: total", DiscreteLaplace(Fraction(22, 7))),
        ),
    )
    charge(ledger, "run", awkward)
    [entry] = ledger.entries("data")
    assert entry.guarantee == awkward
    assert (entry.run_id, entry.dataset, entry.release) == ("run", "data", "release")
    assert (entry.edition, entry.token, entry.digest) == (1, None, None)
    assert not entry.is_settled


def test_a_run_is_charged_once(ledger):
    for _ in range(3):
        charge(ledger, "run", gaussian(1), limit=rho(1))
    assert spent_rho(ledger) == 1


def test_runs_add_up_and_data_sets_do_not(ledger):
    for run, cost in [("a", "1/3"), ("b", "1/7"), ("c", "2/21")]:
        charge(ledger, run, gaussian(cost))
    charge(ledger, "d", gaussian(5), dataset="other")
    assert spent_rho(ledger) == Fraction(4, 7)
    assert [entry.run_id for entry in ledger.entries("data")] == ["a", "b", "c"]
    assert ledger.datasets() == ["data", "other"]


def test_a_run_charged_for_one_plan_or_input_cannot_draw_for_another(ledger):
    charge(ledger, "run", gaussian(1))
    charge(ledger, "other", gaussian(1), print_="new", new_edition=True)
    for change in (
        {"guarantee": gaussian(2)},
        {"guarantee": gaussian(1, REPLACE)},
        {"guarantee": gaussian(1), "print_": "new"},
        {"guarantee": gaussian(1), "dataset": "another"},
    ):
        with pytest.raises(LedgerError, match="another plan or another input"):
            charge(ledger, "run", **change)
    assert len(ledger.entries("data")) == 2
    assert ledger.entries("another") == []


# -- limits ---------------------------------------------------------------------------------------


def test_the_limit_may_be_reached_but_not_passed(ledger):
    charge(ledger, "a", gaussian("3/4"), limit=rho(1))
    with pytest.raises(
        BudgetExceeded, match=r"costs rho = 1/3, but .* has only 1/4 of its limit 1"
    ):
        charge(ledger, "b", gaussian("1/3"), limit=rho(1))
    charge(ledger, "c", gaussian("1/4"), limit=rho(1))
    with pytest.raises(BudgetExceeded, match="has only 0 of its limit"):
        charge(ledger, "d", gaussian(Fraction(1, 10**6)), limit=rho(1))
    assert spent_rho(ledger) == 1


def test_a_limit_holds_for_runs_that_do_not_state_it(ledger):
    charge(ledger, "a", gaussian(1), limit=rho(1))
    assert ledger.account("data").limits == {"person": rho(1)}
    with pytest.raises(BudgetExceeded):
        charge(ledger, "b", gaussian(1))


def test_a_refused_charge_leaves_neither_entry_nor_limit_nor_edition(ledger):
    with pytest.raises(BudgetExceeded):
        charge(ledger, "a", gaussian(2), limit=rho(1))
    assert ledger.entries("data") == []
    assert ledger.account("data") == Account()
    charge(ledger, "b", gaussian(2), print_="another print")


def test_pure_epsilon_is_limited_by_pure_epsilon(ledger):
    charge(ledger, "a", laplace(1), limit=epsilon(2))
    charge(ledger, "b", laplace(1), limit=epsilon(2))
    with pytest.raises(BudgetExceeded, match="costs epsilon = 1/100"):
        charge(ledger, "c", laplace("1/100"), limit=epsilon(2))


def test_gaussian_noise_never_meets_a_limit_in_pure_epsilon(ledger):
    with pytest.raises(BudgetExceeded, match="limit in pure epsilon, which Gaussian noise never"):
        charge(ledger, "a", gaussian(Fraction(1, 10**6)), limit=epsilon(100))
    charge(ledger, "b", gaussian(1))
    ledger.set_limit("data", "person", epsilon(100), below_spent=True)
    with pytest.raises(BudgetExceeded, match="limit in pure epsilon"):
        charge(ledger, "c", laplace(1))  # what was spent before cannot be added up either


def test_laplace_noise_counts_half_its_squared_epsilon_against_a_limit_in_rho(ledger):
    charge(ledger, "a", laplace(1), limit=rho("3/4"))
    charge(ledger, "b", gaussian("1/4"), limit=rho("3/4"))
    assert spent_rho(ledger) == Fraction(3, 4)
    with pytest.raises(BudgetExceeded):
        charge(ledger, "c", laplace("1/100"), limit=rho("3/4"))


def test_added_and_removed_records_count_double_beside_replaced_ones(ledger):
    """A replacement is a removal and an addition: two cells move where one did."""
    charge(ledger, "a", gaussian(1, ADD_REMOVE), limit=rho(3))
    charge(ledger, "b", gaussian(1, ADD_REMOVE), limit=rho(3))  # 2 of 3, for add_remove
    with pytest.raises(BudgetExceeded, match=r"costs rho = 1/100, but .* has only 0 of its limit"):
        charge(ledger, "c", gaussian("1/100", REPLACE), limit=rho(3))  # 4 of 3, for replace
    ledger.set_limit("data", "person", rho(5))
    charge(ledger, "d", gaussian(1, REPLACE))
    with pytest.raises(BudgetExceeded):
        charge(ledger, "e", gaussian("1/100", ADD_REMOVE))  # counted as 1/50 from now on


def test_a_limit_that_differs_from_the_ledgers_is_refused(ledger):
    charge(ledger, "a", gaussian(1), limit=rho(4))
    for other in (rho(5), rho(3), epsilon(4)):
        with pytest.raises(LedgerError, match=r"holds a limit of rho = 4 .* set_limit"):
            charge(ledger, "b", gaussian(1), limit=other)
    ledger.set_limit("data", "person", rho(5))
    charge(ledger, "b", gaussian(1), limit=rho(5))


def test_a_limit_below_what_is_spent_stops_everything(ledger):
    charge(ledger, "a", gaussian(2))
    with pytest.raises(LedgerError, match=r"has spent rho = 2 for a person, .* below_spent"):
        ledger.set_limit("data", "person", rho(1))
    assert ledger.account("data").limits == {}
    ledger.set_limit("data", "person", rho(1), below_spent=True)
    with pytest.raises(BudgetExceeded, match="has only 0 of its limit 1 left"):
        charge(ledger, "b", gaussian(Fraction(1, 10**6)))


def test_check_raises_what_charge_would_and_writes_nothing(ledger):
    check(ledger, "a", gaussian(1), limit=rho(1))
    with pytest.raises(BudgetExceeded):
        check(ledger, "a", gaussian(2), limit=rho(1))
    assert not ledger.path.exists()
    charge(ledger, "a", gaussian(1), limit=rho(2))
    with pytest.raises(BudgetExceeded):
        check(ledger, "b", gaussian(2))
    with pytest.raises(LedgerError, match="holds a limit"):
        check(ledger, "b", gaussian(1), limit=rho(3))
    with pytest.raises(LedgerError, match="unit"):
        check(ledger, "b", gaussian(1, unit="firm"))
    with pytest.raises(LedgerError, match="has changed since"):
        check(ledger, "b", gaussian(1), "changed")
    check(ledger, "b", gaussian(1), "changed", new_edition=True)
    check(ledger, "a", gaussian(1), "print")  # charged before: nothing more to pay
    assert len(ledger.entries("data")) == 1


# -- editions -------------------------------------------------------------------------------------


def test_a_changed_input_must_be_declared_and_spending_still_adds_up(ledger):
    charge(ledger, "a", gaussian(1), print_="2010", limit=rho(2))
    with pytest.raises(LedgerError, match=r"has changed since its last release.*new_edition"):
        charge(ledger, "b", gaussian(1), print_="2011")
    charge(ledger, "b", gaussian(1), print_="2011", new_edition=True)
    assert [entry.edition for entry in ledger.entries("data")] == [1, 2]
    with pytest.raises(BudgetExceeded):
        charge(ledger, "c", gaussian(1), print_="2012", new_edition=True)


def test_editions_that_are_known_need_no_declaration(ledger):
    charge(ledger, "a", gaussian(1), print_="2010")
    charge(ledger, "b", gaussian(1), print_="2011", new_edition=True)
    charge(ledger, "c", gaussian(1), print_="2010")
    charge(ledger, "d", gaussian(1), print_="2011", new_edition=True)  # declared, though known
    assert [entry.edition for entry in ledger.entries("data")] == [1, 2, 1, 2]


def test_each_data_set_has_one_secret_key(ledger):
    key = ledger.key("data")
    assert len(key) == 32
    assert ledger.key("data") == key
    assert ledger.key("other") != key
    charge(ledger, "a", gaussian(1))
    assert ledger.key("data") == key
    assert Ledger(ledger.path.with_name("elsewhere.sqlite")).key("data") != key


def test_the_ledger_is_for_its_owners_eyes(ledger):
    ledger.key("data")
    assert ledger.path.stat().st_mode & 0o077 == 0


# -- drawing: claim and settle --------------------------------------------------------------------


def test_noise_is_drawn_after_the_charge_and_once(ledger):
    with pytest.raises(LedgerError, match="not in the ledger: charge it before"):
        ledger.claim("run")
    charge(ledger, "run", gaussian(1))
    claim = ledger.claim("run")
    assert claim.guarantee == gaussian(1)
    assert ledger.entry("run").token == claim.token
    ledger.settle(claim, "digest")
    assert ledger.entry("run").digest == "digest"
    with pytest.raises(LedgerError, match="has been drawn, but its measurements are not here"):
        ledger.claim("run")
    with pytest.raises(LedgerError, match="Another process took over"):
        ledger.settle(claim, "digest")  # not even the same claim settles twice


def test_of_two_claimants_only_the_later_may_settle(ledger):
    charge(ledger, "run", gaussian(1))
    first, second = ledger.claim("run"), ledger.claim("run")
    assert first.token != second.token
    with pytest.raises(LedgerError, match="Another process took over"):
        ledger.settle(first, "first")
    ledger.settle(second, "second")
    with pytest.raises(LedgerError, match="Another process took over"):
        ledger.settle(first, "first")
    assert ledger.entry("run").digest == "second"


def test_a_run_that_died_before_settling_may_claim_again_at_no_cost(ledger):
    charge(ledger, "run", gaussian(1), limit=rho(1))
    ledger.claim("run")
    charge(ledger, "run", gaussian(1), limit=rho(1))  # resumed
    ledger.settle(ledger.claim("run"), "digest")
    assert spent_rho(ledger) == 1


def test_a_made_up_claim_settles_nothing(ledger):
    charge(ledger, "run", gaussian(1))
    for forged in (Claim("run", "token", gaussian(1)), Claim("another", "token", gaussian(1))):
        with pytest.raises(LedgerError):
            ledger.settle(forged, "digest")
    assert not ledger.entry("run").is_settled


# -- reading --------------------------------------------------------------------------------------


def test_reading_an_absent_ledger_makes_none(ledger):
    assert ledger.entries("data") == []
    assert ledger.account("data") == Account()
    assert ledger.datasets() == []
    assert ledger.entry("run") is None
    assert not ledger.path.exists()


def test_a_ledger_in_no_folder_is_not_read_as_an_empty_one(tmp_path):
    """`check` must find what `charge` would stumble over."""
    nowhere = Ledger(tmp_path / "nowhere" / "ledger.sqlite")
    with pytest.raises(LedgerError, match="Check that its folder exists"):
        nowhere.entries("data")
    with pytest.raises(LedgerError, match="Check that its folder exists"):
        check(nowhere, "run", gaussian(1))


def test_keys_are_not_made_by_looking_for_them(ledger):
    assert ledger.known_key("data") is None
    assert not ledger.path.exists()
    key = ledger.key("data")
    assert ledger.known_key("data") == key
    assert ledger.known_key("other") is None


def test_reading_and_checking_change_no_byte(ledger):
    charge(ledger, "run", gaussian(1), limit=rho(2))
    before = ledger.path.read_bytes(), ledger.path.stat().st_mtime_ns
    ledger.entries("data")
    ledger.account("data")
    ledger.datasets()
    ledger.entry("run")
    check(ledger, "next", gaussian(1), "print", limit=rho(2))
    assert (ledger.path.read_bytes(), ledger.path.stat().st_mtime_ns) == before


def test_joint_totals_are_stated_for_one_relation(ledger):
    charge(ledger, "a", gaussian(1, ADD_REMOVE))
    charge(ledger, "b", laplace(1, REPLACE))
    total = ledger.account("data").total("person")
    assert total.neighbours is REPLACE
    assert total.rho == 2 + 2 * Fraction(1, 2) ** 2 / 2
    assert total.pure_epsilon is None
    assert together(laplace(1, REPLACE)).pure_epsilon == 1
    assert together(gaussian(1)).neighbours is ADD_REMOVE


def test_the_joint_guarantee_is_the_exact_one_of_all_charges(ledger):
    total = together(gaussian(1, ADD_REMOVE), gaussian(1, REPLACE))
    assert total.rho == 3
    exact = Accountant(REPLACE).add(DiscreteGaussian("1/2")).add(DiscreteGaussian(1))
    assert total.epsilon("1e-10") == exact.epsilon(1e-10) < exact.epsilon_zcdp(1e-10)


# -- files that are no ledger ---------------------------------------------------------------------


def unusable(tmp_path: Path) -> dict[str, Path]:
    text = tmp_path / "notes.txt"
    text.write_text("These are notes, and no data base at all. " * 50)
    folder = tmp_path / "folder.sqlite"
    folder.mkdir()
    cut = tmp_path / "cut.sqlite"
    charge(Ledger(cut), "run", gaussian(1))
    cut.write_bytes(cut.read_bytes()[:3000])
    foreign = tmp_path / "foreign.sqlite"
    with closing(sqlite3.connect(foreign)) as db:
        db.execute("CREATE TABLE photos (name TEXT)")
    return {
        "text": text,
        "folder": folder,
        "cut": cut,
        "foreign": foreign,
        "no folder": tmp_path / "nowhere" / "ledger.sqlite",
        "below a file": text / "ledger.sqlite",
    }


@pytest.mark.parametrize("case", ["text", "folder", "cut", "no folder", "below a file"])
def test_what_is_no_ledger_is_not_charged(tmp_path, case):
    path = unusable(tmp_path)[case]
    with pytest.raises(LedgerError, match=r"cannot be (opened|used)"):
        charge(Ledger(path), "run2", gaussian(1))


@pytest.mark.parametrize("case", ["text", "folder", "cut", "foreign"])
def test_what_is_no_ledger_is_not_read_as_an_empty_one(tmp_path, case):
    path = unusable(tmp_path)[case]
    content = path.read_bytes() if path.is_file() else None
    with pytest.raises(LedgerError, match=r"cannot be (opened|used)"):
        Ledger(path).entries("data")
    assert content is None or path.read_bytes() == content


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("charge", "guarantee_json", "{"),
        ("charge", "guarantee_json", "[]"),
        ("charge", "guarantee_json", json.dumps({"charges": []})),
        ("charge", "guarantee_json", "5"),
        ("unit_limit", "limit_json", "[1]"),
        ("unit_limit", "limit_json", '{"rho": "many"}'),
        ("unit_limit", "limit_json", '{"rho": "-1"}'),
        ("unit_limit", "limit_json", '{"rho": "1/0"}'),
    ],
)
def test_a_damaged_entry_stops_the_ledger(ledger, table, column, value):
    charge(ledger, "run", gaussian(1), limit=rho(4))
    with closing(sqlite3.connect(ledger.path)) as db:
        db.execute(f"UPDATE {table} SET {column} = ?", (value,))
        db.commit()
    with pytest.raises(LedgerError, match="The ledger is damaged"):
        charge(ledger, "next", gaussian(1), limit=rho(4))


def test_a_file_left_empty_by_a_crash_is_an_empty_ledger(ledger):
    ledger.path.touch()
    assert ledger.entries("data") == []
    charge(ledger, "run", gaussian(1))
    assert spent_rho(ledger) == 1


# -- several processes ----------------------------------------------------------------------------

CHARGER = """
import sys
from fractions import Fraction
from pathlib import Path
from trellis.errors import BudgetExceeded
from trellis.privacy.budget import Budget
from trellis.privacy.guarantee import Charge, Guarantee
from trellis.privacy.ledger import Ledger, Terms
from trellis.privacy.mechanisms import DiscreteGaussian
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection

path, run = Path(sys.argv[1]), sys.argv[2]
charges = (Charge("x", DiscreteGaussian("1/2")),)
cost = Guarantee(Protection("person", Neighbours.ADD_REMOVE, 1), charges)
print("ready", flush=True)
sys.stdin.readline()
try:
    terms = Terms(limit=Budget(rho=Fraction(1)))
    Ledger(path).charge("data", run, "release", cost, terms, "print")
    print("charged")
except BudgetExceeded:
    print("refused")
"""


def test_of_two_processes_under_one_limit_exactly_one_gets_through(ledger):
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", CHARGER, str(ledger.path), f"run-{i}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in range(2)
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    said = sorted(process.communicate(timeout=60)[0].strip() for process in processes)
    assert said == ["charged", "refused"]
    assert spent_rho(ledger) == 1


def test_a_writer_waits_for_another(ledger):
    """What one has charged when it lets go, the other sees."""
    charge(ledger, "a", gaussian(1), limit=rho(2))
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        row = holder.execute("SELECT * FROM charge").fetchone()
        holder.execute("INSERT INTO charge VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", ("b", *row[1:]))
        waiting = subprocess.Popen(
            [sys.executable, "-c", CHARGER.replace("Fraction(1)", "Fraction(2)"),
             str(ledger.path), "c"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert waiting.stdout.readline() == "ready\n"
        waiting.stdin.write("go\n")
        waiting.stdin.flush()
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(timeout=0.5)
        holder.execute("COMMIT")
    assert waiting.communicate(timeout=60)[0].strip() == "refused"
