"""Which of twenty classifiers to train, and how far: boxes paid in instalments on the learning curves of LCDB.

A box is a learner; its stages are trainings on 1/32, on 1/8 and on all of the data, each begun anew and paid in full.
Before a data set is seen, the accuracies of all learners at all stages have a multivariate t distribution learned from
the other data sets, and the logarithms of their seconds beside a line in the logarithm of the size a normal one
(`lcdb_prior.py`). Every training that is done conditions both. Net value: accuracy of the best learner trained on all
data, less the exchange rate times all seconds; the regret is to the one training that has the highest net value.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from lcdb_curves import SHARES, Curves
from lcdb_prior import FREEDOMS, Kind, Normal, fitted, likeliest
from scipy import stats

from pbgi.arrays import Bools, Floats, Ints
from pbgi.index import gittins_index, instalment_index

RATES = (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
KEPT = (2, 3, 4)  # successive halving keeps one in so many
JITTER = 1e-10
LAST = len(SHARES) - 1
# Ways to the last stage: first those that leave out nothing that follows, the shortest first.
PATHS = ((2,), (1, 2), (0, 1, 2), (0, 2))


class Kinds(NamedTuple):
    """Degrees of freedom and shrinkage of what is believed of accuracies and of seconds."""

    accuracy: Kind
    seconds: Kind


def kinds_for(curves: Curves) -> tuple[Kinds, Kinds]:
    """For data sets of even and of odd numbers: each time the likeliest for those of the other half."""
    numbers = np.arange(len(curves.datasets))
    even, odd = (_likeliest_among(curves, numbers[half::2]) for half in (1, 0))
    return even, odd


def _likeliest_among(curves: Curves, some: Ints) -> Kinds:
    rests = np.log(curves.seconds) - lines_in_size(curves, some)
    accuracy, seconds = (each[some].reshape(len(some), -1) for each in (curves.accuracy, rests))
    # What is expected of seconds is the mean of an exponential, which a t distribution does not have.
    return Kinds(likeliest(accuracy, FREEDOMS), likeliest(seconds, [np.inf]))


def lines_in_size(curves: Curves, some: Ints) -> Floats:
    """Log seconds of all data sets as lines in the log of the size, one per learner, fitted to some."""
    log_sizes, logs = np.log(curves.sizes), np.log(curves.seconds[some])
    lines = np.empty(curves.seconds.shape)
    for learner in range(len(curves.learners)):
        known = ~np.isnan(logs[:, learner])
        lines[:, learner] = np.polyval(np.polyfit(log_sizes[some][known], logs[:, learner][known], 1), log_sizes)
    return lines


class Task:
    """One data set: what its trainings give and cost, and what is believed before from the others."""

    def __init__(self, curves: Curves, number: int, kinds: Kinds) -> None:
        others = np.delete(np.arange(len(curves.datasets)), number)
        self.accuracy, self.seconds = curves.accuracy[number], curves.seconds[number]
        self.present: Bools = ~np.isnan(self.accuracy).any(axis=1)
        lines = lines_in_size(curves, others)
        rests = np.log(curves.seconds) - lines
        self.value_prior = fitted(curves.accuracy[others].reshape(len(others), -1), *kinds.accuracy)
        self.cost_prior = fitted(rests[others].reshape(len(others), -1), *kinds.seconds)
        self.log_line = lines[number].ravel()

    def best_net(self, rate: float) -> float:
        """Of the one training whose net value is highest."""
        return float(np.max((self.accuracy - rate * self.seconds)[self.present, LAST]))


class Search:
    """Trainings so far, and what they say of the others."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.done = np.full(len(task.accuracy), -1)  # the last stage that was trained
        self.spent, self.best = 0.0, -np.inf
        self._where: list[int] = []
        self.open_: Bools = task.present.copy()

    def train(self, learner: int, stage: int) -> None:
        """Pay for one training and see its accuracy."""
        self.done[learner] = stage
        self.spent += float(self._task.seconds[learner, stage])
        self._where.append(learner * len(SHARES) + stage)
        if stage == LAST:
            self.best = max(self.best, float(self._task.accuracy[learner, stage]))
            self.open_[learner] = False

    def beliefs(self) -> tuple[Normal, Floats]:
        """Of all accuracies; and the expected seconds of all trainings."""
        task = self._task
        values = task.value_prior.given(self._where, task.accuracy.ravel()[self._where])
        rest = np.log(task.seconds.ravel()[self._where]) - task.log_line[self._where]
        costs = task.cost_prior.given(self._where, rest)
        seconds = np.exp(task.log_line + costs.mean + 0.5 * np.diag(costs.covariance))
        return values, seconds.reshape(task.seconds.shape)

    def one_payment(self, rate: float) -> tuple[Floats, Floats, Floats, Floats]:
        """Index, mean, deviation and seconds of training each learner on all data at once."""
        values, seconds = self.beliefs()
        last = np.arange(LAST, len(values.mean), len(SHARES))
        mean, std = values.mean[last], np.sqrt(np.maximum(np.diag(values.covariance)[last], 0.0))
        index = gittins_index(mean, std, np.log(rate * seconds[:, LAST]))
        return np.where(self.open_, index, -np.inf), mean, std, seconds[:, LAST]

    def instalments(self, rate: float, *, skip: bool = False) -> tuple[Floats, Ints]:
        """Index of each learner with the stages it has left, and which is next.

        With `skip` some may be left out: of all ways to the last stage the one of highest index.
        """
        values, seconds = self.beliefs()
        index, following = np.full(len(seconds), -np.inf), np.zeros(len(seconds), dtype=np.intp)
        for path in PATHS if skip else PATHS[: len(SHARES)]:
            learners = np.flatnonzero(self.open_ & (self.done < path[0] if skip else self.done == path[0] - 1))
            if not learners.size:
                continue
            where = learners[:, None] * len(SHARES) + np.array(path)
            # The last row of the Cholesky factor: what each stage adds to what is known of the last one.
            blocks = values.covariance[where[:, :, None], where[:, None, :]] + JITTER * np.eye(len(path))
            reveals = np.abs(np.linalg.cholesky(blocks)[:, -1])
            log_costs = np.log(rate * seconds[learners[:, None], list(path)])
            found = instalment_index(values.mean[where[:, -1]], reveals, log_costs)
            higher = found > index[learners]
            index[learners[higher]], following[learners[higher]] = found[higher], path[0]
        return index, following


Outcome = tuple[float, float]  # accuracy and seconds


def by_index(task: Task, rate: float) -> Outcome:
    """PBGI with one payment: train the learner of highest index on all data, until none is above the best."""
    search = Search(task)
    while search.open_.any():
        index = search.one_payment(rate)[0]
        if search.best >= index.max():
            break
        search.train(int(np.argmax(index)), LAST)
    return search.best, search.spent


def by_instalments(task: Task, rate: float, *, skip: bool = False) -> Outcome:
    """The same with instalments: train the learner of highest index one stage further."""
    search = Search(task)
    while search.open_.any():
        index, following = search.instalments(rate, skip=skip)
        if search.best >= index.max():
            break
        learner = int(np.argmax(index))
        search.train(learner, int(following[learner]))
    return search.best, search.spent


def by_improvement_per_cost(task: Task, rate: float) -> Outcome:
    """Expected improvement per expected second, stopped as PBGI is; before the first training 0 is in hand."""

    def per_cost(best: float, mean: Floats, std: Floats, seconds: Floats) -> Floats:
        z = (mean - max(best, 0.0)) / np.maximum(std, 1e-12)
        score: Floats = std * (stats.norm.pdf(z) + z * stats.norm.cdf(z)) / seconds
        return score

    return _by_score(task, rate, per_cost)


def by_price(task: Task, rate: float) -> Outcome:
    """Cheapest first, stopped as PBGI is."""
    return _by_score(task, rate, lambda best, mean, std, seconds: -seconds)  # noqa: ARG005 - a score may need less


def _by_score(task: Task, rate: float, score: Callable[[float, Floats, Floats, Floats], Floats]) -> Outcome:
    """Train the learner of highest score on all data, until no index is above the best."""
    search = Search(task)
    while search.open_.any():
        index, mean, std, seconds = search.one_payment(rate)
        if search.best >= index.max():
            break
        scores = score(search.best, mean, std, seconds)
        search.train(int(np.argmax(np.where(search.open_, scores, -np.inf))), LAST)
    return search.best, search.spent


def train_all(task: Task) -> Outcome:
    search = Search(task)
    for learner in np.flatnonzero(task.present):
        search.train(int(learner), LAST)
    return search.best, search.spent


def halving(task: Task, kept: int, learners: list[int] | None = None, first: int = 0) -> Outcome:
    """Successive halving from a stage on: one in `kept` goes on to the next."""
    search = Search(task)
    left = np.flatnonzero(task.present) if learners is None else np.array(learners)
    for stage in range(first, len(SHARES)):
        for learner in left:
            search.train(int(learner), stage)
        n_left = max(1, round(len(left) / kept))
        left = left[np.argsort(-task.accuracy[left, stage], kind="stable")[:n_left]]
    return search.best, search.spent


def hyperband(task: Task, rng: np.random.Generator, kept: int = 3) -> Outcome:
    """Successive halving from the first, the second and the last stage on, with fewer learners each time."""
    present = np.flatnonzero(task.present)
    outcomes = []
    for first in range(len(SHARES)):
        n = max(1, round(len(present) / kept**first))
        outcomes.append(halving(task, kept, rng.permutation(present)[:n].tolist(), first))
    return max(best for best, _ in outcomes), sum(spent for _, spent in outcomes)


AT_A_RATE: dict[str, Callable[[Task, float], Outcome]] = {
    "instalments": by_instalments,
    "instalments, stages may be skipped": partial(by_instalments, skip=True),
    "one payment": by_index,
    "EI per cost, same stop": by_improvement_per_cost,
    "cheapest first, same stop": by_price,
}


Record = dict[str, float | str | int]


def outcomes_of(job: tuple[Curves, int, Kinds]) -> list[Record]:
    """All policies on one data set: a record each."""
    curves, number, kinds = job
    task, dataset = Task(curves, number, kinds), curves.datasets[number]
    found = [(name, rate, policy(task, rate)) for rate in RATES for name, policy in AT_A_RATE.items()]
    fixed = {"train all": train_all(task), "Hyperband": hyperband(task, np.random.default_rng(dataset))}
    fixed |= {f"successive halving, 1 in {kept}": halving(task, kept) for kept in KEPT}
    found += [(name, rate, outcome) for name, outcome in fixed.items() for rate in RATES]
    return [
        {
            "dataset": dataset,
            "policy": name,
            "rate": rate,
            "accuracy": accuracy,
            "seconds": seconds,
            "regret": task.best_net(rate) - (accuracy - rate * seconds),
        }
        for name, rate, (accuracy, seconds) in found
    ]


def run(curves: Curves, raw: Path, jobs: int) -> None:
    """All data sets that are not in the file yet; a line each."""
    raw.parent.mkdir(parents=True, exist_ok=True)
    done = {record["dataset"] for record in records_in(raw)}
    kinds = kinds_for(curves)
    print(f"degrees of freedom and shrinkage: {kinds}")
    todo = [(curves, n, kinds[n % 2]) for n, dataset in enumerate(curves.datasets) if dataset not in done]
    with ProcessPoolExecutor(jobs) as pool, raw.open("a") as lines:
        for count, records in enumerate(pool.map(outcomes_of, todo), start=1):
            lines.write(json.dumps(records) + "\n")
            lines.flush()
            print(f"\r{len(done) + count} of {len(curves.datasets)} data sets", end="", flush=True)
    print()


def records_in(raw: Path) -> list[Record]:
    if not raw.exists():
        return []
    return [record for line in raw.read_text().splitlines() for record in json.loads(line)]


Means = dict[str, dict[float, dict[str, float]]]


def summarize(records: Sequence[Record]) -> Means:
    """Means over data sets, by policy and rate."""
    groups: dict[tuple[str, float], list[Record]] = defaultdict(list)
    for record in records:
        groups[str(record["policy"]), float(record["rate"])].append(record)
    means: Means = defaultdict(dict)
    for (policy, rate), members in groups.items():
        means[policy][rate] = {
            name: float(np.mean([float(member[name]) for member in members]))
            for name in ("accuracy", "seconds", "regret")
        }
    return dict(means)


def section(means: Means) -> str:
    """Markdown, as it stands in docs/instalments.md."""
    regrets = [_row(name, [f"{1000 * at[rate]['regret']:.1f}" for rate in RATES]) for name, at in means.items()]
    bought = [
        _row(name, [f"{at[rate]['accuracy']:.4f} in {at[rate]['seconds']:.0f} s" for rate in RATES])
        for name, at in means.items()
        if name in AT_A_RATE
    ]
    for name, at in means.items():
        if name not in AT_A_RATE:
            one = at[RATES[0]]
            bought.append(_row(name, [f"{one['accuracy']:.4f} in {one['seconds']:.0f} s", *[""] * (len(RATES) - 1)]))
    header = [_row("exchange rate", [f"{rate:g}" for rate in RATES]), "|" + "---|" * (len(RATES) + 1)]
    return "\n".join(["Regret x 1000:", "", *header, *regrets, "", "Accuracy and seconds:", "", *header, *bought])


def _row(name: str, cells: Sequence[str]) -> str:
    return f"| {' | '.join([name, *cells])} |"


def targets(means: Means) -> list[tuple[str, bool]]:
    """Instalments ahead of all from 1e-4 to 1e-2; Hyperband's accuracy at half its seconds."""
    lines = []
    for rate in RATES[1:]:
        ours = means["instalments"][rate]["regret"]
        name, best = min(
            ((n, at[rate]["regret"]) for n, at in means.items() if not n.startswith("instalments")), key=lambda x: x[1]
        )
        lines.append((f"rate {rate:g}: {1000 * ours:.1f}, the best other ({name}) {1000 * best:.1f}", ours < best))
    for name in [name for name in means if name.startswith(("Hyperband", "successive"))]:
        peer = means[name][RATES[0]]
        seconds = seconds_for(means["instalments"], peer["accuracy"])
        lines.append(
            (
                f"accuracy {peer['accuracy']:.4f} of {name}: {seconds:.0f} s, its own {peer['seconds']:.0f} s",
                seconds <= 0.5 * peer["seconds"],
            )
        )
    return lines


def seconds_for(at: Mapping[float, Mapping[str, float]], accuracy: float) -> float:
    """Mean seconds for a mean accuracy, by a coin between the two rates around it; infinite beyond the last."""
    points = sorted((one["accuracy"], one["seconds"]) for one in at.values())
    if accuracy > points[-1][0]:
        return float("inf")
    known, seconds = np.array(points).T
    return float(np.interp(accuracy, known, seconds))
