"""What all benchmarks share: where they ran, how long a call takes, and how they are told."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path

LIBRARIES = ("numba", "numpy", "networkx", "rustworkx", "igraph", "grpcio", "pyarrow")


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def machine() -> dict[str, object]:
    """Where and when this runs, with the load that others put on it, and the versions of the libraries."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load_before": [round(load, 2) for load in os.getloadavg()],
        "system": platform.system(),
        "python": platform.python_version(),
        **{library: version(library) for library in LIBRARIES},
    }


def timed(act: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def clocked(act: Callable[[], object]) -> tuple[float, float]:
    """Seconds that one call takes, and those that this thread was at work in them: the rest, others had the processor."""
    start, cpu = time.perf_counter(), time.thread_time()
    act()
    return time.perf_counter() - start, time.thread_time() - cpu


def tail(seconds: list[float]) -> dict[str, float]:
    """How uneven calls are: percentiles in microseconds, and what part of the sum the slowest hundredth of them takes."""
    ordered = sorted(seconds)
    slowest = ordered[len(ordered) - max(1, len(ordered) // 100) :]
    at = {"p50_us": 0.5, "p90_us": 0.9, "p99_us": 0.99}
    return {
        **{name: round(ordered[int(len(ordered) * share)] * 1e6, 1) for name, share in at.items()},
        "max_us": round(ordered[-1] * 1e6, 1),
        "share_of_slowest_hundredth": round(sum(slowest) / sum(ordered), 3),
    }


def cpu_s(pid: int) -> float:
    """Seconds of processor time that a process has taken so far, all its threads together. Linux alone tells them so."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def spread(seconds: Iterable[float]) -> dict[str, float]:
    """How many there are, their median and 99th percentile, in microseconds."""
    ordered = sorted(seconds)
    if not ordered:
        return {"count": 0}
    at = min(len(ordered) - 1, int(len(ordered) * 0.99))
    return {
        "count": len(ordered),
        "median_us": round(statistics.median(ordered) * 1e6, 1),
        "p99_us": round(ordered[at] * 1e6, 1),
    }


def tell(figures: object) -> None:
    """Print the figures as one JSON object."""
    json.dump(figures, sys.stdout, indent=2)
    print()
