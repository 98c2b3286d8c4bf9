"""A Ray cluster of two nodes for a test, all of it on 127.0.0.1, in processes of its own.

The test imports nothing of Ray: whether Ray stays on the loopback interface is decided when it is imported, by the
environment. Run as a script this is the process that holds the cluster. It reads commands from its standard input, and
ends the cluster when that closes, which it also does when whoever started it is killed.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Ray takes the second for a wish to keep to one machine, wherever it runs: every address is then the loopback one.
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "OMP_NUM_THREADS": "1",
}


class RayCluster:
    """Two nodes of one processor each; the second can be killed and replaced.

    Attributes:
        folder: Where Ray keeps its files.
        address: For `ray.init`.
        second_node: Ray's id of the node that can be killed.
    """

    def __init__(self) -> None:
        # Not in pytest's folder: the paths of sockets may not be longer than 107 characters. Not where Ray puts it by
        # itself either: other programs on this machine look there for a cluster to join.
        self.folder = Path(tempfile.mkdtemp(prefix="pbgi-ray-"))
        self._own = {**ENVIRONMENT, "RAY_TMPDIR": str(self.folder)}
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env={**os.environ, **self._own},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.address, self.second_node = self._answer()

    @property
    def process_id(self) -> int:
        """Of the process that holds the cluster; the nodes are its children."""
        return self._process.pid

    def kill_second_node(self) -> None:
        """Its processes end at once, as if the machine were gone."""
        self._ask("kill")

    def replace_second_node(self) -> None:
        """Add a node in the place of one that was killed."""
        self.second_node = self._ask("add")[1]

    @contextmanager
    def running(self, log: Path, *command: object) -> "Iterator[subprocess.Popen[bytes]]":
        """A command of Python's in a process of its own, which is killed in the end if it has not ended.

        Args:
            log: Where its output goes; a pipe that nobody reads would fill up.
            command: What to run: a script and its arguments.
        """
        line, environment = [sys.executable, *map(str, command)], {**os.environ, **self._own}
        with log.open("ab") as output:
            process = subprocess.Popen(line, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def close(self) -> None:
        """End the cluster."""
        self._process.communicate(timeout=300)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _ask(self, command: str) -> list[str]:
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> list[str]:
        return json.loads(self._process.stdout.readline())


def main() -> None:
    """Hold a cluster until the standard input closes; answer each command with its address and its second node."""
    from ray.cluster_utils import Cluster

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Ray prints is not an answer
    node = {"node_ip_address": "127.0.0.1", "num_cpus": 1, "object_store_memory": 80 * 2**20}
    head = node | {"include_dashboard": False, "dashboard_host": "127.0.0.1"}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    second = cluster.add_node(**node)
    try:
        print(json.dumps([cluster.address, second.node_id]), file=answers, flush=True)
        for command in sys.stdin:
            if command.strip() == "kill":
                cluster.remove_node(second, allow_graceful=False)
            else:
                second = cluster.add_node(**node)
            print(json.dumps([cluster.address, second.node_id]), file=answers, flush=True)
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()
