"""Time and memory to estimate generated states of several sizes, strategy of 2020.

Run `python benchmarks/histogram_state.py [blocks ...]`. Noisy answers are kept in memory in 2 bytes
each; memory is the peak of the process beyond them, while estimating.
"""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Event, Thread
from time import perf_counter, process_time

from _generated_state import LEVELS, generated_state

from trellis.estimate.histograms.estimators import estimate_gls_topdown
from trellis.execution.threads import available_workers

SIZES = (6_000, 20_000, 60_000)
NATION = 8_000_000
PAGE = 4096


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


class PeakMemory:
    def __enter__(self) -> PeakMemory:
        self.before = self.peak = resident()
        self._stop = Event()
        self._thread = Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._stop.wait(0.05):
            self.peak = max(self.peak, resident())

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def main() -> None:
    sizes = [int(size) for size in sys.argv[1:]] or SIZES
    requests = [(level, query) for level in LEVELS for query in ("total", "hispanic * cenrace")]
    estimate_gls_topdown(generated_state(300, 0, 0), 0, marginals=requests[:2])  # compile
    print(f"{available_workers()} cores; 2,016 cells, 11 query groups on 6 levels")
    print("errors and estimates of 2 marginals on every level included\n")
    print("  blocks   seconds   CPU s    memory  us per block  distance")
    for size in sizes:
        state = generated_state(size, 0, 1)
        with PeakMemory() as memory:
            began, cpu = perf_counter(), process_time()
            found = estimate_gls_topdown(state, 0, marginals=requests)
            took, cpu = perf_counter() - began, process_time() - cpu
        used = (memory.peak - memory.before) / 1e6
        print(
            f"{size:>8,}{took:>10.1f}{cpu:>8.1f}{used:>7.0f} MB{cpu / size * 1e6:>14.0f}"
            f"{found.distance:>10.3f}",
            flush=True,
        )
        last = cpu / size
    print(f"\nat the last rate {NATION:,} blocks take {NATION * last / 3600:.1f} CPU hours")


if __name__ == "__main__":
    main()
