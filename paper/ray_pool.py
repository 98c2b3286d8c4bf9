"""The same runs as tasks of a Ray cluster, one processor each."""

import logging
from typing import Any

from paper.pool import ONE_THREAD, ROOT, Finished
from paper.specification import Run
from paper.worker import answer
from pbgi.errors import InvalidInputError

# What a task does not need of the repository; Ray copies the rest to its nodes.
LEFT_OUT = [".git", ".venv", ".hypothesis", ".*_cache", "**/__pycache__", "paper/results"]
LEFT_OUT += ["/benchmarks", "/docs", "/examples", "/tests"]


class RayPool:
    """Tasks of a Ray cluster.

    Args:
        address: Of the cluster, as `ray.init` takes it: "auto", "local", "ray://host:10001".

    Raises:
        InvalidInputError: Ray is not installed.
    """

    def __init__(self, address: str) -> None:
        try:
            import ray
        except ImportError:
            raise InvalidInputError(f"--ray needs Ray; got {address!r} without it; pip install 'ray>=2.40'") from None
        self._ray: Any = ray
        environment = {"working_dir": str(ROOT), "excludes": LEFT_OUT, "env_vars": ONE_THREAD}
        ray.init(address=address, runtime_env=environment, log_to_driver=False, logging_level=logging.ERROR)
        self._task = ray.remote(num_cpus=1, max_retries=0)(answer)
        self._running: dict[Any, Run] = {}
        self.size = max(int(ray.cluster_resources().get("CPU", 1)), 1)

    @property
    def n_free(self) -> int:
        """How many runs can be started now."""
        return self.size - len(self._running)

    @property
    def n_running(self) -> int:
        """How many are being executed."""
        return len(self._running)

    def start(self, run: Run) -> None:
        """Begin to execute a run."""
        self._running[self._task.remote(run.to_json())] = run

    def wait(self, timeout: float | None) -> list[Finished]:
        """Wait for at least one run to end; an empty list after so many seconds."""
        done, _ = self._ray.wait(list(self._running), num_returns=1, timeout=timeout)
        return [self._finished(reference, self._running.pop(reference)) for reference in done]

    def _finished(self, reference: Any, run: Run) -> Finished:
        try:
            found = self._ray.get(reference)
        except Exception as error:  # the task's process died, or its node did
            return Finished(run, None, f"{type(error).__name__}: {error}")
        return Finished(run, found.get("record"), found.get("error"))

    def close(self) -> None:
        """Give up what is running and leave the cluster."""
        for reference in self._running:
            self._ray.cancel(reference, force=True)
        self._ray.shutdown()
