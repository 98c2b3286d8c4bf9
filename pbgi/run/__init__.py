"""A whole run in one call.

entry.py            minimize, maximize
loop.py             a run: ask, evaluate, tell, until a rule says stop
evaluation.py       calling the user's function: where, how long, what it returned or raised
ending.py           what ends a run before its rules do: failures, StopRun
starting_points.py  points to begin with
checkpoint.py       a run in a file, from which it goes on
file_lock.py        one program at a time on that file
progress.py log.py  where a run stands, in a line; warnings and logging
result.py           what it leaves behind
"""

from pbgi.run.entry import maximize, minimize
from pbgi.run.loop import LEAST_SECONDS
from pbgi.run.result import Result

__all__ = ["LEAST_SECONDS", "Result", "maximize", "minimize"]
