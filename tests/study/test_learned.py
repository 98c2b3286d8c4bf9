"""The space of a study, learned trial by trial: always what all of its trials show."""

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from pbgi.study.learned import LearnedSpace

UNIT, WIDER = FloatDistribution(0.0, 1.0), FloatDistribution(-1.0, 1.0)
MODEL, LAYERS = CategoricalDistribution(["a", "b", "c"]), IntDistribution(1, 3)


def trials_of(n, seed):
    """Trials of a program at random: one parameter gets a wider range on the way, one comes by chance."""
    rng, trials = np.random.default_rng(seed), []
    for number in range(n):
        params, distributions = {}, {}

        def take(name, value, distribution, params=params, distributions=distributions):
            params[name], distributions[name] = value, distribution

        take("model", "abc"[rng.integers(3)], MODEL)
        if params["model"] == "a":
            take("x", rng.random(), WIDER if number > n // 2 else UNIT)
        if params["model"] != "a":
            take("n", int(rng.integers(1, 4)), LAYERS)
            for i in range(params["n"]):
                take(f"u{i}", rng.random(), UNIT)
        if rng.random() < 0.1:
            take("odd", rng.random(), UNIT)
        trial = create_trial(params=params, distributions=distributions, value=0.0)
        trial.number = number
        trials.append(trial)
    return trials


@pytest.mark.parametrize("seed", range(4))
def test_learned_step_by_step_it_is_what_is_learned_at_once(seed):
    trials, rng = trials_of(40, seed), np.random.default_rng(seed)
    order, learned = rng.permutation(40), LearnedSpace()
    for trial in trials:
        trial.state = TrialState.RUNNING
    for number in order:  # they end in another order than they began in
        trials[number].state = TrialState.COMPLETE
        assert learned.search_space("s", trials) == LearnedSpace().search_space("s", trials)


@pytest.mark.parametrize("seed", range(4))
def test_every_completed_trial_has_its_point(seed):
    trials = [t for t in trials_of(60, seed) if "odd" not in t.params]
    for number, trial in enumerate(trials):
        trial.number = number
    space = LearnedSpace().search_space("s", trials)
    assert space.whole
    assert space.distributions.keys() == {"model", "x", "n", "u0", "u1", "u2"}
    assert space.distributions["x"] == WIDER
    points = [space.to_engine(t.params) for t in trials]
    assert [space.from_engine(p) for p in points] == [{n: t.params[n] for n in sorted(t.params)} for t in trials]
    assert {name: dict(p.when or {}) for name, p in space.space.parameters.items()} == {
        "model": {},
        "n": {"model": (1, 2)},
        "u0": {"model": (1, 2)},
        "u1": {"n": (2, 3)},
        "u2": {"n": (3,)},
        "x": {"model": (0,)},
    }


def test_another_study_is_learned_from_its_own_trials():
    learned, trials = LearnedSpace(), trials_of(20, 0)
    learned.search_space("s", trials)
    flat = create_trial(params={"z": 0.5}, distributions={"z": UNIT}, value=0.0)
    assert learned.search_space("t", [flat]).distributions == {"z": UNIT}
    assert not learned.search_space("s", trials[:0]).axes
