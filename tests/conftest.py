from hypothesis import settings

# Machines that run tests are busy, and the first example of a kernel may compile it.
settings.register_profile("trellis", deadline=None)
settings.load_profile("trellis")


def pytest_terminal_summary(terminalreporter):
    """What a machine has no means to test is said once more, at the end, and loudly."""
    missing = {
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple) and "NOT TESTED" in report.longrepr[2]
    }
    for reason in sorted(missing):
        terminalreporter.write_line(f"!!! {reason} !!!", red=True, bold=True)
