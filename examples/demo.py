"""Tune a neural network within 60 seconds of training, beside random search.

A multilayer perceptron for the handwritten digits that come with scikit-learn, in a space as one would write it down:
anything that might be good, over several powers of ten. One trial then takes over a thousand times as long as another
(three layers of 1024 units with batches of 4, six minutes; one of 16 with batches of 256, a fifth of a second), and
nothing is said about that beforehand. Two Optuna studies in one SQLite file, one with pbgi as it comes and one with
random search, get the same seconds. They take turns, the one that has spent less goes next, so that both see the same
machine.

A trial costs the processor seconds of its cross-validation, in one thread: on an idle machine the seconds on the clock,
and on a busy one the other programs do not count. What pbgi takes to choose is not charged, but told at the end.

A trial that uses up what is left of the budget is ended then and there, in either study. It is charged what it used, it
has no loss, and a larger budget later on does not bring it back. What was lost that way is told. A learning rate that
is too high makes a large loss (log_loss clips probabilities, so 36 is the largest), which is a value like any other;
should weights overflow, scikit-learn raises an error, and the trial has failed.

    python examples/demo.py --out demo-output
    python examples/demo.py --out demo-output --budget 120     goes on where the first one ended
    python examples/demo.py --out races --races 10             ten seeds, with a table; half an hour
"""

import argparse
import math
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import optuna
from demo_races import PBGI, RANDOM, Course, Finished, Race, Races, shown
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState
from threadpoolctl import threadpool_limits

import pbgi
from pbgi.integrations.optuna import BudgetCallback, PBGISampler, cost_summary, fail_abandoned, ledger_of

try:
    from demo_picture import draw
    from sklearn.datasets import load_digits
    from sklearn.metrics import log_loss
    from sklearn.model_selection import StratifiedKFold, train_test_split
    from sklearn.neural_network import MLPClassifier
except ImportError:
    sys.exit("The demo needs scikit-learn and matplotlib: pip install scikit-learn matplotlib")

SPACE: dict[str, BaseDistribution] = {
    "batch_size": IntDistribution(4, 256, log=True),
    "width": IntDistribution(16, 1024, log=True),
    "layers": IntDistribution(1, 3),
    "learning_rate": FloatDistribution(1e-5, 1.0, log=True),
    "alpha": FloatDistribution(1e-8, 1.0, log=True),
}
EPOCHS, N_FOLDS = 20, 3
STEPS_BETWEEN_LOOKS = 64  # at the clock: the largest network takes almost two seconds for them
RACES = Path(__file__).with_name("demo_races.json")  # run beforehand, for the picture


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
        """The same split every time; pixels from 0 to 1."""
        X, y = load_digits(return_X_y=True)
        X, X_held_out, y, y_held_out = train_test_split(X / 16.0, y, test_size=0.25, stratify=y, random_state=0)
        return cls(X, y, X_held_out, y_held_out)

    def cross_validated_loss(self, params: dict, seconds: float) -> float:
        """The mean log loss of the folds, if they can be trained within so many processor seconds."""
        deadline = time.process_time() + seconds
        folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(self.X, self.y)
        losses = []
        for train, test in folds:
            model = trained(params, self.X[train], self.y[train], deadline)
            losses.append(log_loss(self.y[test], model.predict_proba(self.X[test])))
        end_after(deadline)
        return float(np.mean(losses))

    def on_held_out(self, params: dict) -> tuple[float, float]:
        """Log loss, and percent misread, of the held-out digits, after training on all others."""
        with one_quiet_thread():
            model = trained(params, self.X, self.y)
            loss = float(log_loss(self.y_held_out, model.predict_proba(self.X_held_out)))
            return loss, 100.0 * (1.0 - model.score(self.X_held_out, self.y_held_out))


def trained(params: dict, X: np.ndarray, y: np.ndarray, deadline: float = math.inf) -> MLPClassifier:
    """The network after all epochs, which are trained in pieces in order to look at the clock in between."""
    model = MLPClassifier(
        (params["width"],) * params["layers"],
        batch_size=params["batch_size"],
        learning_rate_init=params["learning_rate"],
        alpha=params["alpha"],
        random_state=0,
    )
    rng, piece = np.random.default_rng(0), STEPS_BETWEEN_LOOKS * params["batch_size"]
    for _ in range(EPOCHS):
        order = rng.permutation(len(y))
        for begin in range(0, len(y), piece):
            some = order[begin : begin + piece]
            model.partial_fit(X[some], y[some], classes=range(10))
            end_after(deadline)
    return model


def end_after(deadline: float) -> None:
    """End the trial if its time is over."""
    if time.process_time() > deadline:
        raise optuna.TrialPruned("the budget is spent")


@contextmanager
def one_quiet_thread() -> Iterator[None]:
    """One thread for linear algebra, and no warning that the last batch of a piece is smaller than the others."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Got `batch_size` less than 1 or larger than sample size")
        yield


# The race ------------------------------------------------------------------------------------------------------------


class Racer:
    """One of the two studies: it spends its budget trial by trial."""

    def __init__(self, name: str, seed: int, args: argparse.Namespace, digits: Digits) -> None:
        self.name, self.budget, self._seed, self._digits = name, args.budget, seed, digits
        title = f"{name}, seed {seed}, pbgi {pbgi.__version__}"  # another version runs races of its own
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
        left, begun = self.budget - self.spent, time.process_time()
        try:
            with one_quiet_thread():
                return self._digits.cross_validated_loss(params, left)
        finally:
            trial.set_user_attr("cost", time.process_time() - begun)  # also if it fails

    def finished(self) -> list[Finished]:
        """The trials that trained, in order. Those that ended after the budget was spent have no loss."""
        finished, spent = [], 0.0
        for account in ledger_of(self.study.get_trials(deepcopy=False)).accounts.values():
            trial, cost = account.trial, account.charged
            if trial.state.is_finished() and cost > 0.0:
                spent += cost
                counts = trial.state == TrialState.COMPLETE and spent <= self.budget
                loss = trial.value if counts else None
                finished.append(Finished(trial.params, loss, cost, spent, trial.state.name.lower()))
        return finished


def suggest(trial: optuna.Trial, name: str) -> float:
    d = SPACE[name]
    suggest = trial.suggest_int if isinstance(d, IntDistribution) else trial.suggest_float
    return suggest(name, d.low, d.high, log=d.log)


def run_race(seed: int, args: argparse.Namespace, digits: Digits) -> dict[str, Racer]:
    """Trial by trial: the one that has spent less goes next."""
    racers = [Racer(name, seed, args, digits) for name in (PBGI, RANDOM)]
    if all(racer.stopped for racer in racers):
        told = f"The race with seed {seed} is over. Go on with a larger --budget, or begin again with --anew."
        print(told, file=sys.stderr)
    while running := [racer for racer in racers if racer.stopped is None]:
        racer = min(running, key=lambda racer: racer.spent)
        racer.step()
        tell_progress(racer)
    return {racer.name: racer for racer in racers}


# What is told --------------------------------------------------------------------------------------------------------


def describe(params: dict) -> str:
    return f"{params['layers']} x {params['width']} units, batches of {params['batch_size']}"


def tell_progress(racer: Racer) -> None:
    finished = racer.finished()
    if finished:
        last, left = finished[-1], max(racer.budget - racer.spent, 0.0)
        print(
            f"{racer.name:13s} {racer.spent:5.1f} s spent, {left:5.1f} s left | best {shown(Course.of(finished).loss)}"
            f" | trial {len(finished) - 1:3d}: {describe(last.params):31s} {shown(last.loss)} in {last.cost:5.2f} s",
            file=sys.stderr,
            flush=True,
        )


def tell_result(racer: Racer, digits: Digits) -> None:
    finished = racer.finished()
    print(f"\n{racer.name}: {len(finished)} trials in {racer.spent:.1f} s of training")
    print(f"  stopped: {racer.stopped}")
    tell_spending(finished)
    best = min((trial for trial in finished if trial.loss is not None), key=lambda trial: trial.loss, default=None)
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
    """What the seconds went into: by the cost of trials, and what was lost on those that have no loss."""
    lost = [trial for trial in finished if trial.loss is None]
    for name, low, high in (("up to 1 s", 0.0, 1.0), ("1 s to 10 s", 1.0, 10.0), ("over 10 s", 10.0, math.inf)):
        group = [trial for trial in finished if trial.loss is not None and low < trial.cost <= high]
        best, seconds = Course.of(group).loss, math.fsum(trial.cost for trial in group)
        print(f"  trials of {name + ':':13s} {len(group):3d} in {seconds:5.1f} s, best {shown(best)}")
    print(f"  trials without a loss:  {len(lost):3d} in {math.fsum(trial.cost for trial in lost):5.1f} s")
    for trial in lost:
        end = "failed" if trial.state == "fail" else "ended with the budget"
        print(f"    {end} after {trial.cost:.1f} s: {describe(trial.params)}")


def tell_race(args: argparse.Namespace, digits: Digits) -> None:
    """One race, with all about it, and a picture."""
    racers = run_race(args.seed, args, digits)
    for racer in racers.values():
        tell_result(racer, digits)
    choosing = [racers[name].choosing for name in (PBGI, RANDOM)]
    print(
        f"\nchoosing took pbgi {choosing[0]:.1f} s beside the training, random search {choosing[1]:.1f} s (this time)"
    )
    others = Races.load(RACES)
    finished = {name: racer.finished() for name, racer in racers.items()}
    draw(finished, args.budget, args.seed, others if others.budget == args.budget else None, args.out / "demo.png")
    print(f"picture: {args.out / 'demo.png'}; studies: {args.storage}")


def tell_races(args: argparse.Namespace, digits: Digits) -> None:
    """Several races as a table, and their courses as a file."""
    races = []
    for seed in range(args.seed, args.seed + args.races):
        racers = run_race(seed, args, digits)
        races.append(Race(seed, *(Course.of(racers[name].finished()) for name in (PBGI, RANDOM))))
    run = Races(pbgi.__version__, args.budget, races)
    run.save(args.out / RACES.name)
    print(run.table())
    print(f"courses: {args.out / RACES.name}; studies: {args.storage}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Tune a neural network on handwritten digits within a budget of seconds, with pbgi and with random "
        "search. Run again, it goes on where it was: after Ctrl-C or a crash, or with a larger --budget. A race that "
        "is over is only told and drawn again; --anew forgets it, and another --seed is another race.",
    )
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of training for each of the two (60)")
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder for all that is written")
    parser.add_argument("--seed", type=int, default=0, help="of both searches (0)")
    parser.add_argument("--races", type=int, help="as many races, from --seed on; a table and demo_races.json")
    parser.add_argument("--storage", help="URL of another storage for the studies, as Optuna takes it")
    parser.add_argument(
        "--anew", action="store_true", help="forget the race with this seed, or the --races, and begin again"
    )
    args = parser.parse_args()
    if not (args.budget > 0.0 and math.isfinite(args.budget)) or args.seed < 0:
        parser.error(f"--budget must be positive and --seed not negative; got {args.budget:g} and {args.seed}")
    if args.races is not None and args.races < 1:
        parser.error(f"--races must be at least 1; got {args.races}; leave it out for one race with a picture")
    args.storage = args.storage or f"sqlite:///{args.out / 'demo.db'}"
    return args


def main() -> None:
    args = arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        (tell_races if args.races else tell_race)(args, Digits.load())
    except KeyboardInterrupt:
        sys.exit("\ninterrupted; run it again to go on")


if __name__ == "__main__":
    main()
