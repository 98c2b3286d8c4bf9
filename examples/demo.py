"""Tune a neural network within 60 seconds of training, beside random search.

A multilayer perceptron for the handwritten digits that come with scikit-learn. Its size and the number of epochs are
part of the search, so one trial may take a hundred times as long as another, and nothing is said about that beforehand.
Two Optuna studies in one SQLite file, one with pbgi and one with random search, get the same seconds. They take turns,
the one that has spent less goes next, so that both see the same machine.

A trial costs the processor seconds of its cross-validation, in one thread: on an idle machine the seconds on the clock,
and on a busy one the other programs do not count. What pbgi takes to choose is not charged, but told at the end.

What is minimized is the logarithm of the log loss. The losses lie between 0.05 and 3, and it is the way from 0.1 to
0.05 that matters: a model of the losses themselves would see little but the bad ones. To random search it makes no
difference.

    python examples/demo.py --out demo-output
    python examples/demo.py --out demo-output --budget 120     goes on where the first one ended
"""

import argparse
import math
import sys
import time
import warnings
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import optuna
from optuna.trial import TrialState
from threadpoolctl import threadpool_limits

from pbgi.integrations.optuna import BudgetCallback, PBGISampler, cost_summary, fail_abandoned, ledger_of

try:
    import matplotlib as mpl
    from sklearn.datasets import load_digits
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import log_loss
    from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import Pipeline, make_pipeline
    from sklearn.preprocessing import StandardScaler
except ImportError:
    sys.exit("The demo needs scikit-learn and matplotlib: pip install 'pbgi[demo]'")

mpl.use("Agg")
from matplotlib import pyplot as plt

SPACE: dict[str, optuna.distributions.BaseDistribution] = {
    "layers": optuna.distributions.IntDistribution(1, 3),
    "width": optuna.distributions.IntDistribution(8, 256, log=True),
    "epochs": optuna.distributions.IntDistribution(3, 100, log=True),
    "learning_rate": optuna.distributions.FloatDistribution(1e-4, 1e-1, log=True),
    "alpha": optuna.distributions.FloatDistribution(1e-6, 1.0, log=True),
}
SIZES = (("small", 0, 4_000), ("middling", 4_000, 20_000), ("large", 20_000, math.inf))  # by number of weights
PBGI, RANDOM = "pbgi", "random search"
COLOURS = {PBGI: "#0072B2", RANDOM: "#D55E00"}  # apart for colour-blind readers too


# What is tuned -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Digits:
    """The images: three quarters to search with, by cross-validation, and a quarter that the search never sees."""

    X: np.ndarray
    y: np.ndarray
    X_held_out: np.ndarray
    y_held_out: np.ndarray

    @classmethod
    def load(cls) -> "Digits":
        """The same split every time."""
        X, y = load_digits(return_X_y=True)
        X, X_held_out, y, y_held_out = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
        return cls(X, y, X_held_out, y_held_out)

    def cross_validated_loss(self, params: dict) -> float:
        """The log loss in five-fold cross-validation."""
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        model, scoring = network(params), "neg_log_loss"
        return -float(cross_val_score(model, self.X, self.y, cv=folds, scoring=scoring, error_score="raise").mean())

    def on_held_out(self, params: dict) -> tuple[float, float]:
        """Log loss, and percent misread, of the held-out digits, after training on all others."""
        with one_quiet_thread():
            model = network(params).fit(self.X, self.y)
            loss = float(log_loss(self.y_held_out, model.predict_proba(self.X_held_out)))
            return loss, 100.0 * (1.0 - model.score(self.X_held_out, self.y_held_out))


def network(params: dict) -> Pipeline:
    layers = (params["width"],) * params["layers"]
    model = MLPClassifier(
        layers,
        max_iter=params["epochs"],
        learning_rate_init=params["learning_rate"],
        alpha=params["alpha"],
        random_state=0,
    )
    return make_pipeline(StandardScaler(), model)


def n_weights(params: dict) -> int:
    """Of the network: 64 pixels in, ten digits out."""
    sizes = [64, *[params["width"]] * params["layers"], 10]
    return sum((n_in + 1) * n_out for n_in, n_out in pairwise(sizes))


class one_quiet_thread:  # noqa: N801 (used like a function)
    """One thread for linear algebra, and no warning that training ended at the last epoch: that is what is tuned."""

    def __enter__(self) -> None:
        self._limits, self._warnings = threadpool_limits(1), warnings.catch_warnings()
        self._warnings.__enter__()
        warnings.simplefilter("ignore", ConvergenceWarning)

    def __exit__(self, *error: object) -> None:
        self._warnings.__exit__(*error)
        self._limits.restore_original_limits()


# The race ------------------------------------------------------------------------------------------------------------


class Racer:
    """One of the two studies: it spends its budget trial by trial."""

    def __init__(self, name: str, args: argparse.Namespace, digits: Digits) -> None:
        self.name, self.budget, self._seed, self._digits = name, args.budget, args.seed, digits
        title = f"{name}, seed {args.seed}"
        if args.anew and title in optuna.get_all_study_names(args.storage):
            optuna.delete_study(study_name=title, storage=args.storage)
        self.study = optuna.create_study(study_name=title, storage=args.storage, load_if_exists=True)
        self.study.sampler = self._sampler()
        fail_abandoned(self.study, older_than=1e-3)  # of a demo that was killed
        self._callback = BudgetCallback(args.budget)
        reason = self._callback.reason(self.study)
        self.stopped = None if reason is None else reason.message
        self.choosing = 0.0  # seconds, in this process

    def _sampler(self) -> optuna.samplers.BaseSampler:
        if self.name == PBGI:
            return PBGISampler(budget=self.budget, search_space=SPACE, seed=self._seed)
        entropy = [self._seed, len(self.study.trials)]  # of its own for each trial: a demo that goes on draws new ones
        return optuna.samplers.RandomSampler(seed=int(np.random.SeedSequence(entropy).generate_state(1)[0]))

    @property
    def spent(self) -> float:
        """Seconds of training."""
        return cost_summary(self.study).spent

    def step(self) -> None:
        """One trial."""
        if self.name == RANDOM:
            self.study.sampler = self._sampler()
        seconds, spent = time.process_time(), self.spent
        self.study.optimize(self._objective, n_trials=1, callbacks=[self._callback], catch=(ValueError,))
        summary = cost_summary(self.study)
        self.stopped = summary.stopped
        self.choosing += time.process_time() - seconds - (summary.spent - spent)

    def _objective(self, trial: optuna.Trial) -> float:
        params = {name: suggest(trial, name) for name in SPACE}
        begun = time.process_time()
        try:
            with one_quiet_thread():
                return math.log10(self._digits.cross_validated_loss(params))
        finally:
            trial.set_user_attr("cost", time.process_time() - begun)  # also if it fails

    def finished(self) -> list["Finished"]:
        """The trials that trained, in order. Those that ended after the budget was spent have no loss."""
        finished, spent = [], 0.0
        for account in ledger_of(self.study.get_trials(deepcopy=False)).accounts.values():
            trial, cost = account.trial, account.charged
            if trial.state.is_finished() and cost > 0.0:
                spent += cost
                counts = trial.state == TrialState.COMPLETE and spent <= self.budget
                loss = 10.0**trial.value if counts else None
                finished.append(Finished(trial.params, loss, cost, spent, trial.state.name.lower()))
        return finished

    def best(self) -> "Finished | None":
        """The one with the least loss."""
        return min((trial for trial in self.finished() if trial.loss is not None), key=lambda t: t.loss, default=None)


@dataclass(frozen=True)
class Finished:
    """A trial: its loss if it counts, what it cost, and what had been spent when it ended, in seconds."""

    params: dict
    loss: float | None
    cost: float
    spent: float
    state: str


def suggest(trial: optuna.Trial, name: str) -> float:
    d = SPACE[name]
    suggest = trial.suggest_int if isinstance(d, optuna.distributions.IntDistribution) else trial.suggest_float
    return suggest(name, d.low, d.high, log=d.log)


def race(racers: list[Racer]) -> None:
    """Trial by trial: the one that has spent less goes next."""
    while running := [racer for racer in racers if racer.stopped is None]:
        racer = min(running, key=lambda racer: racer.spent)
        racer.step()
        tell_progress(racer)


# What is told --------------------------------------------------------------------------------------------------------


def describe(params: dict) -> str:
    return f"{params['layers']} x {params['width']:3d} units, {params['epochs']:2d} epochs"


def shown(loss: float | None) -> str:
    return "  none" if loss is None else f"{loss:6.4f}"


def tell_progress(racer: Racer) -> None:
    finished, best = racer.finished(), racer.best()
    if finished:
        last, left = finished[-1], max(racer.budget - racer.spent, 0.0)
        print(
            f"{racer.name:13s} {racer.spent:5.1f} s spent, {left:5.1f} s left | best {shown(best and best.loss)}"
            f" | trial {len(finished) - 1:3d}: {describe(last.params)}: {shown(last.loss)} in {last.cost:5.2f} s",
            file=sys.stderr,
            flush=True,
        )


def tell_result(racer: Racer, digits: Digits) -> None:
    finished, best = racer.finished(), racer.best()
    print(f"\n{racer.name}: {len(finished)} trials in {racer.spent:.1f} s of training")
    print(f"  stopped: {racer.stopped}")
    tell_spending(finished)
    if best is None:
        print("  no trial ended within the budget")
        return
    loss, error = digits.on_held_out(best.params)
    found = f"found by a trial of {best.cost:.2f} s, after {best.spent:.1f} s"
    print(f"  best: log loss {best.loss:.4f} in cross-validation, {found}")
    print(f"  that network on digits the search never saw: log loss {loss:.4f}, {error:.2f} % misread")
    for name, value in best.params.items():
        print(f"    {name} = {value:.4g}" if isinstance(value, float) else f"    {name} = {value}")


def tell_spending(finished: list[Finished]) -> None:
    """What the seconds went into: by the size of the network, and by how trials ended."""
    groups = {
        f"{size} networks": [t for t in finished if low <= n_weights(t.params) < high] for size, low, high in SIZES
    }
    groups |= {state: [t for t in finished if t.state == state] for state in sorted({t.state for t in finished})}
    for name, group in groups.items():
        best = min((t.loss for t in group if t.loss is not None), default=None)
        print(f"  {name:18s} {len(group):4d} trials {sum(t.cost for t in group):7.1f} s   best {shown(best)}")


def draw(racers: list[Racer], path: Path) -> None:
    """Best value against seconds, and what each trial cost and brought."""
    figure, (progress, trials) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    for racer in racers:
        counted = [trial for trial in racer.finished() if trial.loss is not None]
        if not counted:
            continue
        colour, values = COLOURS[racer.name], [trial.loss for trial in counted]
        seconds = [*(trial.spent for trial in counted), racer.budget]
        best = [*np.minimum.accumulate(values), min(values)]
        progress.step(seconds, best, where="post", color=colour, lw=2.5, label=f"{racer.name}: {best[-1]:.4f}")
        costs = [trial.cost for trial in counted]
        trials.plot(costs, values, "o", color=colour, ms=4.5, alpha=0.6, label=f"{racer.name}: {len(counted)} trials")
    progress.set(
        xlabel="training so far (s)",
        ylabel="best log loss so far (nats)",
        title="What the seconds bought",
        yscale="log",
    )
    trials.set(xlabel="training of one trial (s)", ylabel="log loss (nats)", title="What they were spent on")
    trials.set(xscale="log", yscale="log")
    for axis in (progress.yaxis, trials.yaxis, trials.xaxis):
        axis.set_major_locator(mpl.ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(mpl.ticker.NullFormatter())
    for axes in (progress, trials):
        axes.grid(visible=True, color="#dddddd", lw=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="upper right")
    figure.suptitle("Neural networks for 1,347 handwritten digits, five-fold cross-validation")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Tune a neural network on handwritten digits within a budget of seconds, with pbgi and with random "
        "search. Run again, it goes on where it was: after Ctrl-C or a crash, or with a larger --budget. A race that "
        "is over is only told and drawn again; --anew forgets it, and another --seed is another race.",
    )
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of training for each of the two (60)")
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder for demo.db and demo.png")
    parser.add_argument("--seed", type=int, default=0, help="of both searches (0)")
    parser.add_argument("--storage", help="URL of another storage for the studies, as Optuna takes it")
    parser.add_argument("--anew", action="store_true", help="forget the race with this seed and begin again")
    args = parser.parse_args()
    if not (args.budget > 0.0 and math.isfinite(args.budget)) or args.seed < 0:
        parser.error(f"--budget must be positive and --seed not negative; got {args.budget:g} and {args.seed}")
    args.storage = args.storage or f"sqlite:///{args.out / 'demo.db'}"
    return args


def main() -> None:
    args = arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    digits = Digits.load()
    racers = [Racer(name, args, digits) for name in (PBGI, RANDOM)]
    if all(racer.stopped for racer in racers):
        print("This race is over. Go on with a larger --budget, or begin again with --anew.", file=sys.stderr)
    try:
        race(racers)
    except KeyboardInterrupt:
        sys.exit("\ninterrupted; run it again to go on")
    for racer in racers:
        tell_result(racer, digits)
    print(
        f"\nchoosing took pbgi {racers[0].choosing:.1f} s beside the training, random search {racers[1].choosing:.1f} s"
    )
    draw(racers, args.out / "demo.png")
    print(f"picture: {args.out / 'demo.png'}; studies: {args.storage}")


if __name__ == "__main__":
    main()
