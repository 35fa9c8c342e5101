"""Runs every benchmark, or those named: `python -m benchmarks projection sampling`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> int:
    names = sys.argv[1:] or sorted(p.stem for p in HERE.glob("*.py") if not p.stem.startswith("_"))
    failed = []
    for name in names:
        print(f"\n== {name} ".ljust(100, "="), flush=True)
        # A process of its own: one benchmark's memory and threads do not disturb the next.
        if subprocess.run([sys.executable, HERE / f"{name}.py"], check=False).returncode:
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
