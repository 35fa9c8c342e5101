import pytest
from hypothesis import settings

from seeded_bits import SeededBits

# Machines that run tests are busy, and the first example of a kernel may compile it. `make test`
# tries the same examples every time, `make explore` tries others.
settings.register_profile("trellis", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("trellis")


@pytest.fixture
def same_simulation(monkeypatch):
    """Simulated releases draw the same noise every time: no false alarms."""
    monkeypatch.setattr("trellis.privacy.public_noise.OsRandom", lambda: SeededBits(1))


def pytest_terminal_summary(terminalreporter):
    """What a machine has no means to test is said once more, at the end, and loudly."""
    missing = {
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple) and "NOT TESTED" in report.longrepr[2]
    }
    for reason in sorted(missing):
        terminalreporter.write_line(f"!!! {reason} !!!", red=True, bold=True)
