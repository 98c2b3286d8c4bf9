"""A process that executes runs: plain JSON lines in, plain JSON lines out.

Started by `paper.pool` with one thread per numerical library, which must be said before NumPy is imported. When its
standard input closes, because whoever started it is done or was killed, it ends at once.
"""

import json
import os
import queue
import sys
import threading
import traceback
from typing import Any


def main() -> None:
    """Answer requests until there are no more."""
    # What libraries print must not end up among the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    while True:
        answers.write(json.dumps(answer(requests.get()), allow_nan=False) + "\n")
        answers.flush()


def _listen(requests: "queue.SimpleQueue[str]") -> None:
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)


def answer(request: str) -> dict[str, Any]:
    """{"record": ...} of the run that is asked for, or {"error": ...} with the traceback."""
    try:
        from paper.execution import execute
        from paper.specification import Run

        return {"record": execute(Run.from_plain(json.loads(request)))}
    except Exception:  # whatever it is, it is reported, and the next run is another one
        return {"error": traceback.format_exc()}


if __name__ == "__main__":
    main()
