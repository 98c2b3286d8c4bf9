"""Time of a suggestion where trials may stop early, beside one of whole trials, one thread. Run by `make bench`.

A hundred trials of ten stages in four parameters, two thirds of them stopped on the way as a run would have stopped
them, against a hundred whole trials at the same points with the same last values. Each suggestion is made by an
optimizer that knows the trials and nothing else, as in another process. Each is the second one: hyperparameters are
known, as they mostly are in a run, or neither would be fast; the first one is printed as well.
"""

import sys

import numpy as np
from timing import median_seconds, report

import pbgi
from pbgi.history import Trial

N_TRIALS, N_STAGES, DIMENSION = 100, 10, 4
SPACE = {f"x{j}": pbgi.Float(0.0, 1.0) for j in range(DIMENSION)}


def loss(params: dict[str, float], step: int) -> float:
    """A curve that falls to a bowl, more slowly the larger the first parameter is."""
    bowl = sum((value - 0.4) ** 2 for value in params.values())
    return float(bowl + np.exp(-step / (1.0 + 2.0 * params["x0"])))


def history(*, stages: bool) -> pbgi.Optimizer:
    """An optimizer with its trials; whole ones, or some that were stopped after one to nine stages."""
    steps = list(range(1, N_STAGES + 1)) if stages else None
    optimizer = pbgi.Optimizer(SPACE, seed=0, cost=pbgi.LearnedCost(), steps=steps)
    rng = np.random.default_rng(0)
    for number in range(N_TRIALS):
        params = {name: float(value) for name, value in zip(SPACE, rng.random(DIMENSION), strict=True)}
        trial, last = optimizer.enqueue(params), N_STAGES if number % 3 == 0 else int(rng.integers(1, N_STAGES))
        if not stages:
            optimizer.tell(trial, loss(params, N_STAGES), cost=N_STAGES)
            continue
        for step in range(1, last + 1):
            optimizer.report(trial, step, loss(params, step), cost=step)
        if last < N_STAGES:
            optimizer.stop(trial)
    return optimizer


def suggestion(known: pbgi.Optimizer) -> Trial:
    """What comes next, of the trials alone."""
    return pbgi.Optimizer.of(known.space, known.direction, known.settings, known.trials).ask()


def main() -> int:
    """Print the times and whether the target is met."""
    whole, staged = history(stages=False), history(stages=True)
    first = median_seconds({"whole": lambda: suggestion(whole), "stages": lambda: suggestion(staged)})
    whole.ask()
    begun = staged.ask()
    staged_running = pbgi.Optimizer.of(staged.space, staged.direction, staged.settings, staged.trials)
    staged_running.report(begun.number, 1, loss(dict(begun.params), 1), cost=1.0)  # type: ignore[arg-type]
    trials = staged_running.trials

    def decision() -> bool:
        asked = pbgi.Optimizer.of(staged.space, staged.direction, staged.settings, trials)
        return asked.should_continue(begun.number)

    seconds = median_seconds(
        {"whole": lambda: suggestion(whole), "stages": lambda: suggestion(staged), "decision": decision}
    )
    print(f"a suggestion of whole trials: {1e3 * seconds['whole']:.1f} ms")
    print(f"the first one, with stages, times that of whole trials: {first['stages'] / first['whole']:.2f}")
    print(f"a decision whether a trial goes on: {1e3 * seconds['decision']:.1f} ms")
    name = f"a suggestion with {N_TRIALS} trials of {N_STAGES} stages, times that of whole ones"
    return 0 if report(name, seconds["stages"] / seconds["whole"], 3.0, "") else 1


if __name__ == "__main__":
    sys.exit(main())
