"""The nation end to end: from the file of 8.1 million blocks to verified tables of six levels.

Run `python benchmarks/nation.py`. Three sizes, one state, ten and all, show how time and memory
grow. Each release is made twice in a process of its own, as `trellis run` and `trellis verify`
would; the second is shown, with compiled kernels and files in the system's cache. Blocks come from
`examples/nation/get_data.py`: of the census where it is there, otherwise made up.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time

from trellis.workflow.progress import Silent

EXAMPLE = Path(__file__).parents[1] / "examples" / "nation"
SIZES = {"one state": 1, "ten states": 10, "the nation": 51}
MOST_SECONDS, MOST_GIGABYTES = 90, 6


class Stopwatch(Silent):
    """Times the stages of a run by the names they have in the terminal."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begin = perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0) + perf_counter() - begin


def one_release(folder: Path) -> None:
    """Release, verify, and print where the time went."""
    begin = perf_counter()
    import pyarrow.parquet as pq

    import trellis
    from trellis.verify import verify_run

    watch = Stopwatch()
    with watch.stage("all"):
        with watch.stage("run"):
            release = trellis.run(trellis.Spec.load(folder / "spec.yaml"), folder / "out",
                                  progress=watch)  # fmt: skip
        with watch.stage("verify"):
            assert all(finding.holds for finding in verify_run(release.path))
    files = [path for path in release.path.rglob("*") if path.is_file()]
    print(json.dumps({
        "blocks": pq.read_metadata(folder / "data" / "blocks.parquet").num_rows,
        "areas": sum(release.plan.areas),
        "import": perf_counter() - begin - watch.seconds["all"],
        **watch.seconds,
        "cpu": process_time(),
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "megabytes on disk": sum(path.stat().st_size for path in files) / 1e6,
    }))  # fmt: skip


def measured(n_states: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place:
        found = {}
        for attempt in ("cold", "warm"):
            folder = Path(place) / attempt
            folder.mkdir()
            write_data(n_states, folder / "data" / "blocks.parquet")
            (folder / "spec.yaml").write_text((EXAMPLE / "spec.yaml").read_text())
            done = subprocess.run([sys.executable, __file__, "--release", folder],
                                  stdout=subprocess.PIPE, text=True, check=True)  # fmt: skip
            found = json.loads(done.stdout)
        return found


def write_data(n_states: int, place: Path) -> None:
    found = importlib.util.spec_from_file_location("get_data", EXAMPLE / "get_data.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    module.main(n_states, place)


def show(results: dict[str, dict[str, float]]) -> None:
    stages = [name for name in next(iter(results.values())) if name not in NOT_STAGES]
    print(f"\n{'seconds':<22}" + "".join(f"{name:>14}" for name in results))
    for stage in stages:
        print(f"  {stage:<20}" + "".join(f"{r[stage]:>14.2f}" for r in results.values()))
    rest = [r["run"] - sum(r[s] for s in stages if s not in AROUND) for r in results.values()]
    print(f"  {'hashes and the rest':<20}" + "".join(f"{x:>14.2f}" for x in rest))
    for title, key, form in (
        ("end to end", "total", ">14.2f"), ("processor seconds", "cpu", ">14.2f"),
        ("per million blocks", "per million", ">14.2f"), ("peak memory, GB", "gigabytes", ">14.2f"),
        ("run folder, MB", "megabytes on disk", ">14.0f"),
        ("blocks", "blocks", ">14,.0f"), ("areas", "areas", ">14,.0f"),
    ):  # fmt: skip
        print(f"{title:<22}" + "".join(f"{r[key]:{form}}" for r in results.values()))


AROUND = ("import", "verify")
NOT_STAGES = ("blocks", "areas", "all", "run", "cpu", "gigabytes", "megabytes on disk", "total",
              "per million")  # fmt: skip


def main() -> None:
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors, load "
          f"{os.getloadavg()[0]:.1f}, Python {platform.python_version()}; warm")  # fmt: skip
    results = {}
    for name, n_states in SIZES.items():
        results[name] = found = measured(n_states)
        found["total"] = found["import"] + found["all"]
        found["per million"] = found["total"] / found["blocks"] * 1e6
    show(results)
    nation = results["the nation"]
    for what, value, most in (("s", nation["total"], MOST_SECONDS),
                              ("GB", nation["gigabytes"], MOST_GIGABYTES)):  # fmt: skip
        verdict = "within" if value <= most else "MORE THAN"
        print(f"the nation: {value:.1f} {what}, {verdict} the {most} {what} aimed at")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--release"]:
        one_release(Path(sys.argv[2]))
    else:
        main()
