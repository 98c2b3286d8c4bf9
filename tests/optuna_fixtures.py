"""Studies, trials and other workers for the tests of studies and of the Optuna sampler."""

import datetime as dt
import math

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

import pbgi
from pbgi.study import attributes
from pbgi.study.storage import trials_of

optuna.logging.set_verbosity(optuna.logging.WARNING)

MIXED = {
    "act": CategoricalDistribution(["relu", "tanh", None]),
    "layers": IntDistribution(1, 8),
    "lr": FloatDistribution(1e-4, 1.0, log=True),
    "width": FloatDistribution(0.0, 1.0, step=0.25),
}


def suggest_mixed(trial):
    return {
        "act": trial.suggest_categorical("act", ["relu", "tanh", None]),
        "layers": trial.suggest_int("layers", 1, 8),
        "lr": trial.suggest_float("lr", 1e-4, 1.0, log=True),
        "width": trial.suggest_float("width", 0.0, 1.0, step=0.25),
    }


def value_of(params):
    loss = (math.log10(params["lr"]) + 2.0) ** 2 + 0.2 * (params["layers"] - 5) ** 2 + (params["width"] - 0.5) ** 2
    return loss + (params["act"] != "tanh")


def cost_of(params):
    return 0.5 * params["layers"] + params["width"]


def objective(trial):
    """Value of a mixed space; says its cost, and fails and is pruned now and then."""
    params = suggest_mixed(trial)
    trial.set_user_attr("cost", cost_of(params))
    if trial.number % 7 == 5:
        raise FloatingPointError("a failure")
    if trial.number % 7 == 6:
        raise optuna.TrialPruned
    return value_of(params)


def add(study, params, value=None, state=optuna.trial.TrialState.COMPLETE, **attributes):
    """Add a finished trial from elsewhere."""
    distributions = {name: FloatDistribution(0.0, 1.0) for name in params}
    trial = optuna.trial.create_trial(
        params=params, distributions=distributions, value=value, state=state, user_attrs=attributes
    )
    study.add_trial(trial)


def sqlite_in(folder):
    return f"sqlite:///{folder}/study.db"


def engine_space():
    """The mixed space as the sampler gives it to the engine."""
    return {
        "act": pbgi.Categorical([0, 1, 2]),
        "layers": pbgi.Integer(1, 8),
        "lr": pbgi.Float(1e-4, 1.0, log=True),
        "width": pbgi.Integer(0, 4),
    }


def from_engine(params):
    act = ("relu", "tanh", None)[params["act"]]
    return {"act": act, "layers": params["layers"], "lr": params["lr"], "width": 0.25 * params["width"]}


START = dt.datetime(2026, 1, 1)
UNIT = FloatDistribution(0.0, 1.0)


def trial_of(seconds, state=TrialState.COMPLETE, system=None, **notes):
    """A trial that took so many seconds."""
    running = state == TrialState.RUNNING
    trial = create_trial(
        state=state,
        params={"x": 0.5},
        distributions={"x": UNIT},
        value=1.0 if state == TrialState.COMPLETE else None,
        user_attrs=notes,
        system_attrs=system or {},
    )
    trial.datetime_start, trial.datetime_complete = START, None if running else START + dt.timedelta(seconds=seconds)
    return trial


def suggested(cost, **more):
    """The attributes of a trial that was suggested, with this expected cost."""
    return {"pbgi:trial": {"params": {"x": 0.5}, "predicted_cost": cost, **more}}


def asked(study, n):
    """All trials, after so many more were asked for."""
    for _ in range(n):
        study.ask()
    return trials_of(study)


class Clockwork:
    """Instead of sleeping: does the next thing that another worker would have done meanwhile."""

    def __init__(self, *steps):
        self.steps = list(steps)

    def __call__(self, _seconds):
        self.steps.pop(0)()


def marks(study):
    """The trials whose workers are choosing."""
    return [trial.number for trial in trials_of(study) if trial.system_attrs.get(attributes.CHOOSING)]
