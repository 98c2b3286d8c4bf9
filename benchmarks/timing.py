"""How the benchmarks measure: one thread, contestants interleaved, medians, and a verdict per target."""

import statistics
import time
from collections.abc import Callable, Mapping

from threadpoolctl import threadpool_limits


def median_seconds(contestants: Mapping[str, Callable[[], object]], repeats: int = 15) -> dict[str, float]:
    """Median wall time of each contestant; they take turns, so that a busy moment of the machine hits all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    with threadpool_limits(limits=1):
        for run in contestants.values():  # warm caches and lazy imports
            run()
        for _ in range(repeats):
            for name, run in contestants.items():
                start = time.perf_counter()
                run()
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def report(what: str, measured: float, target: float, unit: str, *, at_least: bool = False) -> bool:
    """Print one line and return whether the target is met."""
    met = measured >= target if at_least else measured <= target
    bound = "at least" if at_least else "at most"
    print(f"{'ok    ' if met else 'MISSED'}  {what}: {measured:.3g} {unit} (target: {bound} {target:g})")
    return met
