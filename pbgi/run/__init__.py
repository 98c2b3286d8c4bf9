"""A whole run in one call.

loop.py         minimize: ask, evaluate, tell, until a rule says stop
evaluation.py   calling the user's function: where, how long, what it returned or raised
progress.py     where a run stands, in a line
result.py       what it leaves behind
"""

from pbgi.run.loop import LEAST_SECONDS, minimize
from pbgi.run.result import Result

__all__ = ["LEAST_SECONDS", "Result", "minimize"]
