"""Optuna studies that know what trials cost: a sampler, callbacks that stop a study, and what it has spent.

    PBGISampler            suggests by the Gittins index, within a budget; workers share the study's storage
    GittinsStopCallback    stops when no further trial is worth its price
    GittinsPruner          prunes trials that are not worth going on with; works with any sampler
    BudgetCallback         stops when the budget is spent, over all workers and restarts; works with any sampler
    cost_summary           what was spent, what is held for running trials, what is left
    ledger_of              the same, trial by trial
    fail_abandoned         ends the trials of workers that were killed
    tell_result            tells a result, also of a trial that was taken for one of these
    patiently              asks a server that is away again, for a while
    NoTrialLeftError       raised inside a trial that does not fit the budget; Optuna prunes the trial

Nothing but the settings lives in the sampler. All that a suggestion depends on is stored with the trials, so a study
may be stopped, resumed and shared by many processes.
"""

from pbgi.integrations.optuna.callbacks import BudgetCallback, GittinsStopCallback
from pbgi.integrations.optuna.pruner import GittinsPruner
from pbgi.integrations.optuna.sampler import NoTrialLeftError, PBGISampler
from pbgi.integrations.optuna.summary import CostSummary, cost_summary, fail_abandoned
from pbgi.study.attributes import STOP as STOP_KEY
from pbgi.study.late import tell_result
from pbgi.study.ledger import ledger_of
from pbgi.study.storage import patiently

__all__ = [
    "STOP_KEY",
    "BudgetCallback",
    "CostSummary",
    "GittinsPruner",
    "GittinsStopCallback",
    "NoTrialLeftError",
    "PBGISampler",
    "cost_summary",
    "fail_abandoned",
    "ledger_of",
    "patiently",
    "tell_result",
]
