"""The names of all attributes that are stored with a trial or a study, and what they hold.

`cost` is the one that other samplers, callbacks and dashboards read too. What a suggestion depends on is in system
attributes, which come with the trials that a worker reads anyway. The sampler and `pbgi tune` use the same names, so
that a study may go on in Python and come back.
"""

# Of a trial: user attributes.
COST = "cost"  # what it cost
OBSERVED = "pbgi:observed"  # what a success was seen to cost, where `cost` is only what it was charged; 0 for nothing
OVERRUN = "pbgi:overrun"  # true if it was ended because the budget was used up
MESSAGE = "pbgi:message"  # why it failed
SECONDS = "pbgi:seconds"  # how long its commands ran, all attempts together
TOKEN = "pbgi:token"  # noqa: S105 (names the trial's folder, and tells it from trials of other studies)
WORKER = "pbgi:worker"  # which process runs it, see `pbgi.cli.processes.identity`; {} if it waits for any
COMMAND = "pbgi:command"  # which process its command is, and when that began
ATTEMPTS = "pbgi:attempts"  # what earlier attempts took and cost, and whether they were ended from outside
BEAT = "pbgi:beat"  # the last sign of life: seconds so far, and when that was

FROM = "pbgi:from"  # the trial of an earlier study whose result it is, see `pbgi tune --from`
OUTCOMES = "pbgi:outcomes"  # what conditions are about, by name, as it was told
STEP_COSTS = "pbgi:step_costs"  # what it had cost by the steps where its stages ended, and by its last report
CHECKPOINT = "pbgi:checkpoint"  # which folder its checkpoint is in, where that is not its own

# Of a trial: system attributes.
CONSTRAINTS = "constraints"  # Optuna's own: how far a trial is beyond each limit
RETRIED = "failed_trial"  # Optuna's own: the first of the trials whose notes and point this one was given, to try again
TRIAL = "pbgi:trial"  # what was suggested: the point, its predicted cost, and what the policy noted (Trial.record)
CHOOSING = "pbgi:choosing"  # set while a worker chooses the point: the lock it holds meanwhile, or true
PRICE = "pbgi:price"  # what it is charged, where that is known and no cost was told
ENDED = "pbgi:ended"  # it failed and its worker lived to say so
ABANDONED = "pbgi:abandoned"  # it is being failed by another than its worker
LATE = "pbgi:late"  # the number of a failed trial whose result this one is
GOES_ON = "pbgi:goes_on"  # the numbers of the stopped trials that this one goes on with, from the first one on
BEGUN_AGAIN = "pbgi:begun_again"  # the number of a stopped trial that this one tries anew, without its checkpoint

# Of a study: user attributes.
SETTINGS = "pbgi:settings"  # of `pbgi tune`: space, budget, seed and the rest of what suggestions depend on
STOP = "pbgi:stop"  # why it was stopped: rule, message and numbers
NOT_WORTH = "pbgi:not_worth"  # how many times in a row nothing was worth its price
