"""Which of twenty classifiers to train, and how far: boxes paid in instalments on the learning curves of LCDB.

A box is a learner; its stages are trainings on 1/32, on 1/8 and on all of the data, each begun anew and paid in full.
Before a data set is seen, the accuracies of all learners at all stages, and the logarithms of their seconds beside a
line in the logarithm of the size, have a normal distribution taken from the other data sets: means, and covariances
shrunk by a tenth. Every training that is done conditions both. Net value: accuracy of the best learner trained on all
data, less the exchange rate times all seconds; the regret is to the one training that has the highest net value.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from lcdb_curves import SHARES, Curves
from scipy import linalg, stats

from pbgi.arrays import Bools, Floats
from pbgi.index import gittins_index, instalment_index

RATES = (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
KEPT = (2, 3, 4)  # successive halving keeps one in so many
SHRUNK = 0.1
JITTER = 1e-8
LAST = len(SHARES) - 1


class Normal(NamedTuple):
    """What is believed of a vector."""

    mean: Floats
    covariance: Floats

    def given(self, where: list[int], values: list[float]) -> "Normal":
        """What is believed once some of it is known."""
        if not where:
            return self
        factor = linalg.cho_factor(self.covariance[np.ix_(where, where)], lower=True)
        gain = linalg.cho_solve(factor, self.covariance[where]).T
        return Normal(
            self.mean + gain @ (np.array(values) - self.mean[where]),
            self.covariance - gain @ self.covariance[where],
        )


def normal(samples: Floats) -> Normal:
    """From samples by dimensions with gaps: covariances over the samples that two dimensions share, shrunk."""
    mean = np.nanmean(samples, axis=0)
    known = ~np.isnan(samples)
    centered = np.where(known, samples - mean, 0.0)
    covariance = (centered.T @ centered) / np.maximum(known.T.astype(float) @ known, 1.0)
    variance = np.diag(covariance).copy()
    covariance *= 1.0 - SHRUNK
    covariance[np.diag_indices_from(covariance)] = variance
    values, vectors = np.linalg.eigh(covariance)
    return Normal(mean, (vectors * np.maximum(values, JITTER)) @ vectors.T)


class Task:
    """One data set: what its trainings give and cost, and what is believed before from the others."""

    def __init__(self, curves: Curves, number: int) -> None:
        others = np.arange(len(curves.datasets)) != number
        n_learners = len(curves.learners)
        self.accuracy, self.seconds = curves.accuracy[number], curves.seconds[number]
        self.present: Bools = ~np.isnan(self.accuracy).any(axis=1)
        self.value_prior = normal(curves.accuracy[others].reshape(-1, n_learners * len(SHARES)))
        logs, log_sizes = np.log(curves.seconds), np.log(curves.sizes)
        lines = np.array([self._line(log_sizes[others], logs[others, j]) for j in range(n_learners)])
        rests = logs - (lines[:, 0, None] + lines[:, 1, None] * log_sizes[:, None, :])
        self.cost_prior = normal(rests[others].reshape(-1, n_learners * len(SHARES)))
        self.log_line = (lines[:, 0, None] + lines[:, 1, None] * log_sizes[number]).ravel()

    @staticmethod
    def _line(log_sizes: Floats, logs: Floats) -> Floats:
        known = ~np.isnan(logs)
        slope, intercept = np.polyfit(log_sizes[known], logs[known], 1)
        return np.array([intercept, slope])

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
        values = task.value_prior.given(self._where, [float(x) for x in task.accuracy.ravel()[self._where]])
        rest = np.log(task.seconds.ravel()[self._where]) - task.log_line[self._where]
        costs = task.cost_prior.given(self._where, rest.tolist())
        seconds = np.exp(task.log_line + costs.mean + 0.5 * np.diag(costs.covariance))
        return values, seconds.reshape(task.seconds.shape)

    def one_payment(self, rate: float) -> tuple[Floats, Floats, Floats, Floats]:
        """Index, mean, deviation and seconds of training each learner on all data at once."""
        values, seconds = self.beliefs()
        last = np.arange(LAST, len(values.mean), len(SHARES))
        mean, std = values.mean[last], np.sqrt(np.maximum(np.diag(values.covariance)[last], 0.0))
        index = gittins_index(mean, std, np.log(rate * seconds[:, LAST]))
        return np.where(self.open_, index, -np.inf), mean, std, seconds[:, LAST]

    def instalments(self, rate: float) -> Floats:
        """Index of each learner with the stages it has left."""
        values, seconds = self.beliefs()
        index = np.full(len(seconds), -np.inf)
        for n_left in range(1, len(SHARES) + 1):
            learners = np.flatnonzero(self.open_ & (LAST - self.done == n_left))
            if learners.size:
                left = np.arange(len(SHARES) - n_left, len(SHARES))
                where = learners[:, None] * len(SHARES) + left
                # The last row of the Cholesky factor: what each stage adds to what is known of the last one.
                blocks = values.covariance[where[:, :, None], where[:, None, :]] + JITTER * np.eye(n_left)
                reveals = np.abs(np.linalg.cholesky(blocks)[:, -1])
                log_costs = np.log(rate * seconds[learners[:, None], left])
                index[learners] = instalment_index(values.mean[where[:, -1]], reveals, log_costs)
        return index


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


def by_instalments(task: Task, rate: float) -> Outcome:
    """The same with instalments: train the learner of highest index one stage further."""
    search = Search(task)
    while search.open_.any():
        index = search.instalments(rate)
        if search.best >= index.max():
            break
        learner = int(np.argmax(index))
        search.train(learner, int(search.done[learner]) + 1)
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
    "one payment": by_index,
    "EI per cost, same stop": by_improvement_per_cost,
    "cheapest first, same stop": by_price,
}


Record = dict[str, float | str | int]


def outcomes_of(job: tuple[Curves, int]) -> list[Record]:
    """All policies on one data set: a record each."""
    curves, number = job
    task, dataset = Task(curves, number), curves.datasets[number]
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
    todo = [(curves, number) for number, dataset in enumerate(curves.datasets) if dataset not in done]
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
        name, best = min(((n, at[rate]["regret"]) for n, at in means.items() if n != "instalments"), key=lambda x: x[1])
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
