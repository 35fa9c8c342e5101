"""Every executor, for tests of the contract. A new one earns its place here."""

from trellis.execution.processes import Processes
from trellis.execution.threads import Threads

EXECUTORS = {
    "a loop": lambda: Threads(1),
    "threads": lambda: Threads(2),
    "processes": lambda: Processes(2, least_run=1),
}
