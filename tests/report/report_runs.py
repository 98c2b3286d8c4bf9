"""Runs for the tests of reports: an ordinary one, and all sorts of odd ones."""

import math

import numpy as np
import optuna

import pbgi

optuna.logging.set_verbosity(optuna.logging.ERROR)

SPACE = {
    "rate": pbgi.Float(1e-4, 1.0, log=True),
    "depth": pbgi.Integer(1, 12),
    "kind": pbgi.Categorical(["a", "b", None]),
    "fixed": 7,
}
HOSTILE = [
    "</script><script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=2>",
    "<a href='//e.x'><b>x</b></a>",  # short, so that no label cuts it
    "&lt;b&gt; &amp; \"quotes\" 'single' `ticks`",
    "%{x} $\\frac{1}{2}$ {y}",
    "\u202eright to left \x00 null \x1b[31m red \ud800",
    "x" * 300,
]


def value_of(params):
    return (math.log10(params["rate"]) + 2.0) ** 2 + 0.1 * (params["depth"] - 8) ** 2 + (params["kind"] != "b")


def cost_of(params):
    return 0.5 + 0.25 * params["depth"]


def told(optimizer, n, *, fails=(), value=value_of, cost=cost_of):
    """The optimizer after so many trials."""
    for _ in range(n):
        trial = optimizer.ask()
        if trial.number in fails:
            optimizer.fail(trial, cost=None if cost is None else cost(trial.params), message="it broke")
        else:
            optimizer.tell(trial, value(trial.params), cost=None if cost is None else cost(trial.params))
    return optimizer


def ordinary(n=14, **settings):
    """An optimizer with a budget, a failure and a running trial."""
    settings = {"budget": 60.0, "seed": 0, **settings}
    optimizer = told(pbgi.Optimizer(SPACE, **settings), n, fails=(5, 9))
    optimizer.ask()
    return optimizer


def lucky(direction="minimize"):
    """A noisy run: each of ten points has two values, and the one that is the best of all has a poor twin."""
    sign = 1.0 if direction == "minimize" else -1.0
    optimizer = pbgi.Optimizer(
        {"x": pbgi.Float(0.0, 1.0)}, direction=direction, model=pbgi.GPConfig(noisy=True), seed=0
    )
    for i, wobble in [(i, wobble) for i in range(10) for wobble in (-0.02, 0.02)]:
        x = i / 9
        outlier = {-0.02: -0.9, 0.02: 0.9}[wobble] if i == 8 else wobble
        optimizer.tell(optimizer.enqueue({"x": x}), sign * ((x - 0.3) ** 2 + outlier), cost=1.0)
    return optimizer


def suggest_and_charge(trial):
    """An objective for Optuna on SPACE; the trial tells its cost."""
    params = {
        "rate": trial.suggest_float("rate", 1e-4, 1.0, log=True),
        "depth": trial.suggest_int("depth", 1, 12),
        "kind": trial.suggest_categorical("kind", ["a", "b", None]),
    }
    trial.set_user_attr("cost", cost_of(params))
    return value_of(params)


def random_study(n, suggest=None, **options):
    """A study of another sampler, whose trials tell their costs."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), **options)

    study.optimize(suggest or suggest_and_charge, n_trials=n, catch=(FloatingPointError,))
    return study


def _numbers(scale):
    return told(pbgi.Optimizer(SPACE, budget=60.0, seed=0), 12, value=lambda p: scale * value_of(p))


def _categories():
    space = {"x": pbgi.Categorical(["a", "b", "c"]), "y": pbgi.Categorical([True, False])}
    return told(
        pbgi.Optimizer(space, seed=0), 5, value=lambda p: {"a": 1, "b": 2, "c": 3}[p["x"]] + p["y"], cost=lambda _: 2.0
    )


def _branches():
    space = {
        "m": pbgi.Categorical(["a", "b"]),
        "n": pbgi.Integer(1, 3, when={"m": "b"}),
        "x": pbgi.Float(0, 1, when={"m": "b", "n": [2, 3]}),
        "y": pbgi.Float(0, 1, when={"m": "a"}),
    }
    return told(
        pbgi.Optimizer(space, budget=30.0, seed=0),
        12,
        value=lambda p: sum(p.get(n, 0) for n in "nxy"),
        cost=lambda _: 2,
    )


def _conditional(trial):
    trial.set_user_attr("cost", 1.0 + trial.number % 3)
    if trial.suggest_categorical("branch", ["left", "right"]) == "left":
        return trial.suggest_float("only_left", 0.0, 1.0)
    return 1.0 + trial.suggest_int("only_right", 1, 3)


def _failing(trial):
    trial.suggest_float("x", 0.0, 1.0)
    raise FloatingPointError


def _odd_choices(trial):
    choice = trial.suggest_categorical("choice", [math.inf, "inf", 1, True, None])
    return trial.suggest_float("step", 0.0, 1.0, step=0.1) + (choice == "inf")


def _pruned(trial):
    x = trial.suggest_float("x", 0.0, 1.0)
    if trial.number % 2:
        raise optuna.TrialPruned
    return x


def _known_before():
    optimizer = pbgi.Optimizer(SPACE, seed=0)
    for i in range(4):
        optimizer.tell({"rate": 0.1, "depth": i + 1, "kind": "a", "fixed": 7}, float(i))
    return optimizer


ODD = {
    "empty": lambda: pbgi.Optimizer(SPACE, budget=10.0),
    "empty study": lambda: optuna.create_study(),
    "one trial": lambda: told(pbgi.Optimizer(SPACE, budget=10.0, seed=0), 1),
    "one running": lambda: (lambda o: (o.ask(), o)[1])(pbgi.Optimizer(SPACE, seed=0)),
    "all failed": lambda: told(pbgi.Optimizer(SPACE, budget=30.0, seed=0, max_failures=None), 6, fails=range(6)),
    "all failed study": lambda: random_study(4, _failing),
    "branches": _branches,
    "constant values": lambda: told(pbgi.Optimizer(SPACE, budget=30.0, seed=0), 10, value=lambda _: 3.0),
    "constant costs": lambda: told(pbgi.Optimizer(SPACE, budget=30.0, seed=0), 10, cost=lambda _: 1.0),
    "huge values": lambda: _numbers(1e300),
    "tiny values": lambda: _numbers(1e-300),
    "negative values": lambda: _numbers(-1.0),
    "no budget": lambda: told(pbgi.Optimizer(SPACE, seed=0), 12),
    "no costs": lambda: told(pbgi.Optimizer(SPACE, seed=0), 12, cost=None),
    "trials as costs": lambda: told(pbgi.Optimizer(SPACE, budget=20, cost=pbgi.UniformCost(), seed=0), 12, cost=None),
    "huge costs": lambda: told(pbgi.Optimizer(SPACE, seed=0), 12, cost=lambda p: 1e200 * cost_of(p)),
    "categories only": _categories,
    "nothing varies": lambda: told(pbgi.Optimizer({"x": 1}, seed=0), 1, value=lambda _: 1.0, cost=lambda _: 1.0),
    "one parameter": lambda: told(
        pbgi.Optimizer({"x": pbgi.Float(0, 1)}, seed=0), 8, value=lambda p: p["x"], cost=lambda p: 1.0 + p["x"]
    ),
    "maximized": lambda: ordinary(direction="maximize"),
    "running": ordinary,
    "known before": _known_before,
    "exchange rate": lambda: ordinary(policy=pbgi.PBGI(0.01)),
    "stop rule": lambda: ordinary(policy=pbgi.LogEIPC(), stop=pbgi.GittinsStop(0.01)),
    "conditional": lambda: random_study(12, _conditional),
    "odd choices": lambda: random_study(12, _odd_choices),
    "pruned": lambda: random_study(10, _pruned),
    "durations": lambda: random_study(10, lambda trial: trial.suggest_float("x", 0.0, 1.0)),
    "nothing in common": lambda: random_study(6, lambda trial: trial.suggest_float(f"x{trial.number}", 0.0, 1.0)),
    "overspent": lambda: told(
        pbgi.Optimizer(SPACE, budget=2.0, stop=pbgi.BudgetSpent(overshoot=True), seed=0), 1, cost=lambda _: 5.0
    ),
}


def hostile_study():
    """A study whose name, parameters, choices and messages try to be more than text."""
    study = optuna.create_study(study_name=HOSTILE[0] + HOSTILE[1])
    rng = np.random.default_rng(0)
    spaces = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in HOSTILE[:3]}
    spaces[HOSTILE[4]] = optuna.distributions.CategoricalDistribution(HOSTILE)
    for i in range(16):
        failed = i % 5 == 4
        params = {name: float(rng.random()) for name in HOSTILE[:3]} | {HOSTILE[4]: HOSTILE[i % len(HOSTILE)]}
        trial = optuna.trial.create_trial(
            params=params,
            distributions=spaces,
            value=None if failed else sum(params[name] for name in HOSTILE[:3]),
            state=optuna.trial.TrialState.FAIL if failed else optuna.trial.TrialState.COMPLETE,
            user_attrs={"cost": 1.0 + float(rng.random()), "pbgi:message": HOSTILE[i % len(HOSTILE)]},
        )
        study.add_trial(trial)
    study.set_user_attr("pbgi:stop", {"rule": HOSTILE[1], "message": HOSTILE[1], "numbers": {"budget": 40.0}})
    return study
