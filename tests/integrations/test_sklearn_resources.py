"""GittinsSearchCV(resource=...): stages, what they are trained with, what they cost, and who can be the best.

`Curve(slope)` scores 1 - (slope - 3)^2 / 10 - fall / (what it was trained with): its curve is known.
"""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold, KFold, RandomizedSearchCV, cross_val_score
from sklearn.svm import SVC
from sklearn_fixtures import SLOPES, Line, Y
from test_sklearn_search import passed, points

import pbgi
from pbgi import Float, Integer, KnownCost, TrialState, UniformCost
from pbgi.errors import InvalidInputError
from pbgi.integrations.sklearn import GittinsSearchCV
from pbgi.integrations.sklearn.folds import GrowingFolds, growth
from pbgi.integrations.sklearn.resources import Resource
from pbgi.optimizer import Optimizer

X = np.linspace(-1.0, 1.0, 270)[:, None]
LABELS = np.repeat([0, 1, 2], [180, 60, 30])
SPACE = {"slope": Float(0.0, 10.0)}


class Curve(ClassifierMixin, BaseEstimator):
    """It has a score of its own, which falls short by `fall` / (samples), or by `fall` / rounds if it has any."""

    seen = []  # noqa: RUF012 (what was trained with is the subject)

    def __init__(self, slope=1.0, fall=1.0, rounds=None, fails_at=None):
        self.slope, self.fall, self.rounds, self.fails_at = slope, fall, rounds, fails_at

    def fit(self, X, y):
        if self.fails_at is not None and self.slope > 5.0 and len(X) >= self.fails_at:
            raise RuntimeError("too many")
        Curve.seen.append((self.slope, sorted(X[:, 0].tolist())))
        self.classes_, self.n_ = np.unique(y), self.rounds or len(X)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)

    def score(self, X, y):  # noqa: ARG002
        return 1.0 - (self.slope - 3.0) ** 2 / 10.0 - self.fall / self.n_


def searched(estimator=None, **settings):
    """A search by samples whose candidates cost one each; Curve.seen has what was trained with."""
    Curve.seen.clear()
    given = {"resource": "n_samples", "budget": 12.0, "cost": UniformCost(), "cv": 3, "random_state": 0, **settings}
    return GittinsSearchCV(Curve() if estimator is None else estimator, SPACE, **given).fit(X, LABELS)


# What is trained with ------------------------------------------------------------------------------------------------


def test_the_stages_have_a_ninth_a_third_and_all_of_the_samples():
    search = searched()
    assert search.n_resources_ == [30, 90, 270]
    assert sorted({len(samples) for _, samples in Curve.seen[:-1]}) == [20, 60, 180]  # of folds with two thirds
    assert len(Curve.seen[-1][1]) == 270  # the final fit has all


@pytest.mark.parametrize(
    ("settings", "stages"),
    [
        ({"factor": 2}, [68, 135, 270]),
        ({"max_resources": 100, "min_resources": 20}, [34, 100]),
        ({"min_resources": 1, "factor": 4}, [1, 2, 5, 17, 68, 270]),
    ],
)
def test_stages_as_they_are_asked_for(settings, stages):
    assert searched(**settings).n_resources_ == stages


def test_by_default_the_first_stage_has_ten_samples_of_each_class():
    search = GittinsSearchCV(Curve(), SPACE, n_iter=2, resource="n_samples", random_state=0)
    assert search.fit(X[:120], LABELS[::-1][:120]).n_resources_ == [40, 120]  # a ninth would be 14, for three classes


def test_a_candidate_trained_with_all_samples_scores_as_without_stages():
    model, space = LogisticRegression(), {"C": Float(1e-3, 1e3, log=True)}
    search = GittinsSearchCV(model, space, n_iter=3, resource="n_samples", cv=KFold(3, shuffle=True, random_state=1))
    search.fit(X, LABELS)
    (row, *_) = np.flatnonzero(search.cv_results_["n_resources"] == 270)
    expected = cross_val_score(model.set_params(**search.cv_results_["params"][row]), X, LABELS, cv=search.cv).mean()
    assert search.cv_results_["mean_test_score"][row] == expected


def test_a_smaller_training_set_is_part_of_a_larger_one_and_what_is_tested_with_is_all():
    folds = GrowingFolds(3, Curve(), seed=4)
    small, large, all_of_it = (list(folds.of(share).split(X, LABELS)) for share in (1 / 9, 1 / 3, 1.0))
    for (a, test_a), (b, test_b), (c, test_c) in zip(small, large, all_of_it, strict=True):
        assert set(a) < set(b) < set(c)
        assert test_a.tolist() == test_b.tolist() == test_c.tolist()
        assert a.tolist() == sorted(a)
        assert np.bincount(LABELS[a]).tolist() == pytest.approx([120 / 9, 40 / 9, 20 / 9], abs=1.0)


def test_the_random_state_decides_which_samples():
    def parts(seed):
        return [train.tolist() for train, _ in GrowingFolds(3, Curve(), seed).of(0.2).split(X, LABELS)]

    assert parts(4) == parts(4) != parts(5)


@pytest.mark.parametrize("counts", [(500, 30, 3), (40, 40), (7,), (1, 1, 1, 200)])
def test_every_class_grows_at_its_pace(counts):
    labels = np.repeat(np.arange(len(counts)), counts)
    order = growth(len(labels), labels, [1])
    assert sorted(order) == list(range(len(labels)))
    assert set(labels[order[: len(counts)]]) == set(range(len(counts)))  # none is missing
    for n in range(len(counts), len(labels)):
        share = np.bincount(labels[order[:n]], minlength=len(counts)) / np.array(counts)
        # One sample too many or too few of each class, and what the others make of it.
        assert np.abs(share - n / len(labels)) == pytest.approx(0.0, abs=1.5 / min(counts) + 0.01 * len(counts))


def test_without_classes_samples_are_added_at_random():
    order = growth(100, None, [1])
    assert sorted(order) == list(range(100))
    assert order.tolist() != list(range(100))


def test_groups_and_splits_given_as_a_list():
    groups = np.arange(270) % 9
    by_group = GittinsSearchCV(Curve(), SPACE, n_iter=2, cv=GroupKFold(3), resource="n_samples", random_state=0)
    assert by_group.fit(X, LABELS, groups=groups).n_splits_ == 3
    assert searched(cv=list(KFold(4, shuffle=True, random_state=0).split(X))).n_splits_ == 4


# What it costs -------------------------------------------------------------------------------------------------------


def test_a_stopped_candidate_is_charged_its_share_and_a_budget_holds():
    search = searched()
    trials = search.optimizer_.trials
    share = {30: 30 / 390, 90: 120 / 390, 270: 1.0}  # each stage trains anew
    charged = [share[n] for n in search.cv_results_["n_resources"]]
    assert [trial.charged for trial in trials] == pytest.approx(charged)
    assert search.spent_ == pytest.approx(sum(charged))
    assert search.spent_ <= 12.0
    assert len(trials) > 12
    assert search.cv_results_["stopped"].tolist() == [trial.state is TrialState.STOPPED for trial in trials]
    assert search.best_params_["slope"] == pytest.approx(3.0, abs=0.3)


def test_seconds_are_those_of_all_stages():
    search = GittinsSearchCV(Ridge(), {"alpha": Float(1e-3, 1e3)}, n_iter=5, resource="n_samples", random_state=0)
    search.fit(X, X[:, 0] ** 2)
    results = search.cv_results_
    last = 5 * (results["mean_fit_time"] + results["mean_score_time"])
    for trial, seconds in zip(search.optimizer_.trials, last, strict=True):
        before = trial.reports[-2].cost if len(trial.reports) > 1 else 0.0
        assert trial.cost == trial.reports[-1].cost == pytest.approx(before + seconds)


def test_a_candidate_whose_rest_does_not_fit_does_not_go_on():
    """Another one has shown that the first stage is a tenth of the whole."""
    resource = Resource("n_samples", (100, 300), 300)
    optimizer = pbgi.Optimizer(SPACE, direction="maximize", budget=30.0, steps=resource.steps, seed=0)

    def begun(slope, cost):
        trial = optimizer.enqueue({"slope": slope})
        return optimizer.report(trial, 100, 0.5, cost=cost)

    first = begun(1.0, 2.0)
    assert resource.fits(optimizer, first)
    optimizer.report(first, 400, 0.5, cost=20.0)
    for cost, fits in [(0.9, True), (1.1, False)]:  # of 10 that are left
        trial = begun(cost, cost)
        assert resource.fits(optimizer, trial) is fits
        optimizer.stop(trial)
    assert not resource.fits(optimizer, begun(2.0, 0.9))  # of 8


def test_while_none_has_come_to_its_end_there_is_nothing_to_lose():
    resource = Resource("n_samples", (100, 300), 300)
    optimizer = pbgi.Optimizer(SPACE, direction="maximize", budget=30.0, steps=resource.steps, seed=0)
    assert resource.fits(optimizer, optimizer.report(optimizer.ask(), 100, 0.5, cost=29.0))


def test_no_stage_is_paid_twice_also_when_a_stopped_candidate_goes_on(monkeypatch):
    """All are stopped after each stage once three have come to their end; `ask` hands those out again that pay."""
    monkeypatch.setattr(Optimizer, "should_continue", lambda _self, trial: trial.number < 3)
    search = searched(budget=6.0)
    later = [trial for trial in search.optimizer_.trials if trial.number >= 3 and len(trial.reports) > 1]
    assert len(later) > 0
    trained = [(slope, len(samples)) for slope, samples in Curve.seen[:-1]]
    assert all(trained.count(each) == 3 for each in trained)  # once in each of three folds


# Who can be the best -------------------------------------------------------------------------------------------------


def test_only_who_came_to_the_end_can_be_the_best():
    """Scores get worse with more samples: those of stopped candidates are the highest."""
    search = searched(Curve(fall=-60.0))
    results = search.cv_results_
    ended = results["n_resources"] == 270
    assert results["stopped"].tolist() == (~ended).tolist()
    assert results["mean_test_score"][~ended].max() > results["mean_test_score"][ended].max()
    assert search.best_score_ == results["mean_test_score"][ended].max() == search.optimizer_.best.value
    assert search.best_index_ == search.optimizer_.best.number
    last = ended.sum() + 1
    assert results["rank_test_score"][~ended].tolist() == [last] * (~ended).sum()
    assert sorted(results["rank_test_score"][ended]) == list(range(1, last))


def test_rows_are_trials():
    search = searched(batch_size=3)
    assert points(search) == search.cv_results_["params"]
    for trial, score, n in zip(
        search.optimizer_.trials, search.cv_results_["mean_test_score"], search.cv_results_["n_resources"], strict=True
    ):
        assert trial.reports[-1].value == score
        assert search.n_resources_[len(trial.reports) - 1] == n


def test_a_fit_that_fails_at_a_later_stage():
    with pytest.warns(match="fail"):
        search = searched(Curve(fails_at=60), n_iter=8)
    failed = np.array([trial.state is TrialState.FAILED for trial in search.optimizer_.trials])
    assert failed.any()
    assert set(search.cv_results_["n_resources"][failed]) == {90}
    assert np.isnan(search.cv_results_["mean_test_score"][failed]).all()
    charged = [trial.charged for trial in search.optimizer_.trials if trial.state is TrialState.FAILED]
    assert charged == pytest.approx([120 / 390] * len(charged))
    assert not failed[search.best_index_]


# A parameter as resource ---------------------------------------------------------------------------------------------


def test_a_parameter_as_resource():
    search = searched(Curve(rounds=90, fall=0.3), resource="rounds")
    assert search.n_resources_ == [10, 30, 90]  # what the estimator has is the most
    assert [params["rounds"] for params in search.cv_results_["params"]] == search.cv_results_["n_resources"].tolist()
    assert search.cv_results_["param_rounds"].tolist() == search.cv_results_["n_resources"].tolist()
    assert search.best_params_.keys() == {"slope", "rounds"}
    assert search.best_estimator_.rounds == 90
    assert search.best_estimator_.n_ == 90
    assert {len(samples) for _, samples in Curve.seen[:-1]} == {180}


def test_the_most_of_a_parameter_may_be_said():
    search = searched(Curve(fall=0.3), resource="rounds", max_resources=8, factor=2)
    assert search.n_resources_ == [2, 4, 8]
    assert search.best_params_["rounds"] == 8


def test_trees_of_a_forest():
    model, space = RandomForestClassifier(18, random_state=0), {"max_depth": Integer(1, 3)}
    search = GittinsSearchCV(model, space, n_iter=2, cv=2, resource="n_estimators", random_state=0).fit(X, LABELS)
    assert len(search.best_estimator_.estimators_) == 18
    assert search.n_resources_ == [2, 6, 18]


# What scikit-learn expects, and what is refused ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # checks provoke them
def test_passes_the_checks_that_randomized_search_passes():
    model, space, settings = LogisticRegression(), {"C": [0.1, 1.0]}, {"n_iter": 2, "cv": 2, "random_state": 0}
    expected = passed(RandomizedSearchCV(model, space, **settings))
    own = GittinsSearchCV(model, space, resource="n_samples", min_resources=6, factor=1.2, **settings)
    assert expected - passed(own) == set()


def test_clone_keeps_what_was_asked_for():
    search = GittinsSearchCV(Line(), SLOPES, n_iter=3, resource="n_samples", min_resources=4, factor=2)
    assert clone(search).get_params() | {"estimator": 0} == search.get_params() | {"estimator": 0}
    assert not hasattr(search, "n_resources_")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"resource": "trees"}, r"resource must be 'n_samples' or a parameter of SVC that .*'degree'.*; got 'trees'"),
        ({"resource": 3}, "resource must be 'n_samples' or a parameter of SVC"),
        ({"resource": "kernel"}, "resource must be a parameter with whole numbers; got 'kernel', 'rbf'"),
        ({"resource": "shrinking"}, "resource must be a parameter with whole numbers; got 'shrinking', True"),
        ({"resource": "max_iter"}, "max_resources must be given where the estimator has no number of its own"),
        ({"resource": "degree", "max_resources": 3.5}, "max_resources must be a positive whole number; got 3.5"),
        ({"resource": "degree", "max_resources": "most"}, "max_resources must be a positive whole number; got 'most'"),
        ({"min_resources": 0}, "min_resources must be a positive whole number; got 0"),
        ({"max_resources": 25}, "max_resources must be at most the 24 samples that there are; got 25"),
        ({"factor": 1}, "factor must be above 1, by how much a stage has more; got 1"),
        ({"factor": "3"}, "factor must be a positive, finite number; got '3'"),
        ({}, "there must be room for two stages, the first with at least 20; got n_samples=24 and factor=3"),
        ({"min_resources": 20}, "lower min_resources, or leave resource out"),
        ({"resource": None, "max_resources": 5}, "max_resources and min_resources need resource='n_samples'"),
        ({"cv": (fold for fold in [])}, "with a resource cv must be what can be asked twice; got a generator"),
        ({"resource": "C__", "min_resources": 2}, "got 'C__'"),
    ],
)
def test_what_cannot_be_is_refused(settings, message):
    given = {"resource": "n_samples", "n_iter": 3, **settings}
    with pytest.raises(InvalidInputError, match=message):
        GittinsSearchCV(SVC(), {"C": Float(0.1, 1.0)}, **given).fit(X[:24], Y > 0)


def test_a_resource_that_is_searched_is_refused():
    for space in ({"degree": Integer(1, 3)}, [{"C": [1.0]}, {"degree": [2, 3]}]):
        with pytest.raises(InvalidInputError, match="resource must not be searched as well; got 'degree'"):
            GittinsSearchCV(SVC(), space, n_iter=3, resource="degree").fit(X[:24], Y > 0)


def test_stages_of_prices_of_other_units():
    policy = pbgi.PBGI(cost_scale=1e-3)
    search = searched(policy=policy, budget=None, cost=KnownCost(lambda params: 1.0 + params["slope"]))
    assert search.stop_reason_.rule == "GittinsStop"
    assert search.best_params_["slope"] == pytest.approx(3.0, abs=0.5)
