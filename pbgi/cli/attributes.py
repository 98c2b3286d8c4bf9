"""What the command line writes beside a trial's parameters and value: the names of its attributes in the storage.

`cost` is the one that samplers, callbacks and dashboards read too; it is written before a trial is finished, so no
finished trial lacks it. What was suggested for a trial is kept as `PBGISampler` keeps it, so that a study may go on in
Python and come back. The others are notes of the command line.
"""

from pbgi.integrations.optuna.ledger import COST_KEY, OBSERVED_KEY, OVERRUN_KEY

COST = COST_KEY
MESSAGE = "pbgi:message"  # why a trial failed
OBSERVED = OBSERVED_KEY  # what a success was seen to cost, where its cost is only what it was charged; 0 for nothing
OVERRUN = OVERRUN_KEY  # true if it was ended because the budget was used up
SECONDS = "pbgi:seconds"  # how long its commands ran, all attempts together
TOKEN = "pbgi:token"  # noqa: S105 (names the trial's folder, and tells it from trials of other studies)
WORKER = "pbgi:worker"  # which process runs it, see `processes.identity`
COMMAND = "pbgi:command"  # which process its command is, and when that began
ATTEMPTS = "pbgi:attempts"  # what earlier attempts took and cost
BEAT = "pbgi:beat"  # the last sign of life: seconds so far, and when that was
SETTINGS = "pbgi:settings"  # of the study: space, budget, seed and the rest of what suggestions depend on
