"""Trees learned from trials: compared with the programs that made the trials."""

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from pbgi.study.tree import Branch, Seen, learn_tree

UNIT = FloatDistribution(0.0, 1.0)


class Program:
    """A trial of a define-by-run program, at random."""

    def __init__(self, rng):
        self._rng, self.params, self.distributions = rng, {}, {}

    def choose(self, name, choices):
        self.distributions[name] = CategoricalDistribution(choices)
        self.params[name] = choices[self._rng.integers(len(choices))]
        return self.params[name]

    def whole(self, name, low, high):
        self.distributions[name] = IntDistribution(low, high)
        self.params[name] = int(self._rng.integers(low, high + 1))
        return self.params[name]

    def real(self, name):
        self.distributions[name] = UNIT
        self.params[name] = float(self._rng.random())
        return self.params[name]


def seen(program, n, seed=0):
    rng, trials = np.random.default_rng(seed), []
    for _ in range(n):
        trial = Program(rng)
        program(trial)
        trials.append(Seen(trial.params, trial.distributions))
    return trials


def learned(trials):
    usable = {name: d for trial in trials for name, d in trial.distributions.items()}
    return learn_tree(trials, usable)


def conditions(trials):
    return {name: dict(branch.when) for name, branch in learned(trials).items()}


def classifiers(trial):
    trial.real("scale")
    model = trial.choose("model", ("svm", "forest", "knn"))
    if model == "svm":
        trial.real("C")
        trial.real("gamma")
    elif model == "forest":
        trial.real("depth")


def test_branches_of_a_choice():
    assert conditions(seen(classifiers, 30)) == {
        "scale": {},
        "model": {},
        "C": {"model": (0,)},
        "gamma": {"model": (0,)},
        "depth": {"model": (1,)},
    }


def test_one_parameter_in_several_branches():
    def program(trial):
        if trial.choose("model", ("a", "b", "c")) != "b":
            trial.real("x")

    assert conditions(seen(program, 20)) == {"model": {}, "x": {"model": (0, 2)}}


def three_levels(trial):
    if trial.choose("kind", ("linear", "kernel")) == "kernel" and trial.choose("kernel", ("rbf", "poly")) == "poly":
        trial.whole("degree", 2, 5)
        if trial.params["degree"] >= 4:
            trial.real("damping")


@pytest.mark.parametrize("seed", range(5))
def test_branches_within_branches(seed):
    assert conditions(seen(three_levels, 60, seed)) == {
        "kind": {},
        "kernel": {"kind": (1,)},
        "degree": {"kernel": (1,)},
        "damping": {"degree": (4, 5)},
    }


def test_a_loop_over_layers_holds_for_numbers_of_layers_not_seen_yet():
    def program(trial):
        for layer in range(trial.whole("n_layers", 1, 6)):
            trial.real(f"width_{layer}")

    trials = [trial for trial in seen(program, 60) if trial.params["n_layers"] != 5]
    assert conditions(trials)["width_2"] == {"n_layers": (3, 4, 5, 6)}
    assert conditions(trials)["width_0"] == {}


def test_a_condition_that_holds_up_to_a_level():
    def program(trial):
        if trial.whole("n", 0, 4) < 2:
            trial.real("x")

    assert conditions(seen(program, 40))["x"] == {"n": (0, 1)}


def test_what_a_float_decides_is_left_out():
    def program(trial):
        if trial.real("x") > 0.5:
            trial.real("y")

    assert conditions(seen(program, 40)) == {"x": {}}


def test_values_seen_once_explain_nothing():
    trials = [trial for trial in seen(classifiers, 30) if trial.params["model"] != "knn"]
    two = [next(t for t in trials if t.params["model"] == model) for model in ("svm", "forest")]
    assert conditions(two) == {"model": {}, "scale": {}}
    assert set(conditions(trials[:6])) == {"scale", "model", "C", "gamma", "depth"}


def test_the_order_of_the_program_decides_between_parents_that_explain_alike():
    def program(trial):
        first = trial.choose("first", ("a", "b"))
        trial.distributions["second"] = CategoricalDistribution(("a", "b"))
        trial.params["second"] = first
        if first == "a":
            trial.real("x")

    assert conditions(seen(program, 20))["x"] == {"first": (0,)}


def test_a_parameter_that_may_not_be_used_is_no_parent_either():
    trials = seen(classifiers, 30)
    usable = dict.fromkeys(("scale", "C"), UNIT)
    assert learn_tree(trials, usable) == {"scale": Branch(UNIT)}


def test_a_tree_learned_too_early_is_refuted_by_the_next_trial():
    early = [Seen({"m": m, "k": k, "x": 0.0} if m else {"m": m, "k": k}, {}) for m, k in ((1, 1), (1, 1), (0, 0))]
    later = [*early, Seen({"m": 1, "k": 0, "x": 0.0}, {})]
    usable = {"k": IntDistribution(0, 1), "m": IntDistribution(0, 1), "x": UNIT}
    assert learn_tree(later, usable)["x"].when == {"m": (1,)}
    assert set(learn_tree(early, usable)) == {"k", "m", "x"}


def test_no_trials_no_tree():
    assert learn_tree([], {"x": UNIT}) == {}
