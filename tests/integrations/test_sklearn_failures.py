"""GittinsSearchCV and fits that fail: charged, told once, in the results as scikit-learn has them, and not the end."""

import math
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV
from sklearn_fixtures import SLOPES, Line, X, Y, price

from pbgi import KnownCost, TrialState, UniformCost
from pbgi.integrations.sklearn import GittinsSearchCV

IGNORED = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.FitFailedWarning", "ignore:One or more of the:UserWarning"
)
# With a cost that is no measurement, so that the candidates are the same ones on every machine.
SETTINGS = {"n_iter": 9, "random_state": 0, "cv": 3, "cost": UniformCost()}


def all_at_once(search):
    """scikit-learn's own results for the same candidates, evaluated together."""
    grid = [{name: [value] for name, value in params.items()} for params in search.cv_results_["params"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return GridSearchCV(search.estimator, grid, **{name: getattr(search, name) for name in SAME}).fit(X, Y)


SAME = ("cv", "scoring", "refit", "error_score", "return_train_score")


@pytest.mark.parametrize("error_score", [math.nan, -50.0])
@pytest.mark.parametrize("scoring", [None, {"r2": "r2", "error": "neg_mean_absolute_error"}])
@pytest.mark.parametrize("return_train_score", [False, True])
@IGNORED
def test_results_are_those_of_scikit_learn(error_score, scoring, return_train_score):
    model, space = Line(steepest=3.0), SLOPES | {"idle": [1, 2.5, None, (3, 4)]}
    refit = "r2" if scoring else True
    search = GittinsSearchCV(
        model,
        space,
        scoring=scoring,
        refit=refit,
        error_score=error_score,
        return_train_score=return_train_score,
        **SETTINGS,
    ).fit(X, Y)
    failed = [params["slope"] > 3.0 for params in search.cv_results_["params"]]
    assert 0 < sum(failed) < 9

    expected = all_at_once(search)
    assert search.cv_results_.keys() == expected.cv_results_.keys()
    for name, column in expected.cv_results_.items():
        found = search.cv_results_[name]
        if name == "params":
            assert found == column
        elif name.startswith("param_"):
            assert type(found) is type(column)
            assert found.tolist() == column.tolist()
        elif not name.endswith("_time"):
            assert found.dtype == column.dtype, name
            np.testing.assert_array_equal(found, column, err_msg=name)
    assert (search.best_index_, search.best_score_) == (expected.best_index_, expected.best_score_)


def test_a_failed_candidate_is_charged_and_the_search_goes_on():
    with pytest.warns(FitFailedWarning):
        search = GittinsSearchCV(Line(steepest=3.0), SLOPES, **SETTINGS | {"cost": None}).fit(X, Y)
    for trial, slope in zip(search.optimizer_.trials, search.cv_results_["param_slope"], strict=True):
        assert (trial.state is TrialState.FAILED) == (slope > 3.0)
        assert trial.cost > 0.0
        assert trial.message == ("RuntimeError: too steep" if slope > 3.0 else None)
    assert search.spent_ == pytest.approx(sum(trial.cost for trial in search.optimizer_.trials))
    assert len(search.optimizer_.trials) == 9
    assert search.best_params_["slope"] <= 3.0


@IGNORED
def test_a_failed_candidate_is_charged_its_known_price():
    cost = KnownCost(price)
    search = GittinsSearchCV(Line(steepest=3.0), SLOPES, budget=25.0, cost=cost, cv=3, random_state=0).fit(X, Y)
    states = {trial.state for trial in search.optimizer_.trials}
    assert states == {TrialState.COMPLETE, TrialState.FAILED}
    assert search.spent_ == pytest.approx(sum(params["slope"] for params in search.cv_results_["params"]))


@IGNORED
def test_one_failing_fold_fails_the_candidate():
    search = GittinsSearchCV(Line(), SLOPES | {"fails_from": [1.0, 2.0]}, **SETTINGS).fit(X, Y)
    for trial, params in zip(search.optimizer_.trials, search.cv_results_["params"], strict=True):
        assert (trial.state is TrialState.FAILED) == (params["fails_from"] == 1.0)
        assert trial.charged == 1.0
    assert {trial.state for trial in search.optimizer_.trials} == {TrialState.COMPLETE, TrialState.FAILED}
    rows = search.cv_results_["param_fails_from"] == 1.0
    assert np.isnan(search.cv_results_["split0_test_score"][rows]).all()  # trained with x = 1
    assert not np.isnan(search.cv_results_["split2_test_score"][rows]).any()  # x = 1 is what it is tested with


@IGNORED
def test_a_number_for_failures_is_a_score():
    search = GittinsSearchCV(Line(steepest=3.0), SLOPES, error_score=-50, **SETTINGS).fit(X, Y)
    values = {trial.params["slope"]: trial.value for trial in search.optimizer_.trials}
    assert all((value == -50.0) == (slope > 3.0) for slope, value in values.items())
    assert -50.0 in values.values()


def test_raise_raises():
    with pytest.raises(RuntimeError, match="too steep"):
        GittinsSearchCV(Line(steepest=3.0), SLOPES, error_score="raise", **SETTINGS).fit(X, Y)


@IGNORED
@pytest.mark.parametrize("limit", [{"n_iter": 4}, {"budget": 1e4}])
def test_where_nothing_succeeds_the_error_of_scikit_learn_comes_soon(limit):
    search = GittinsSearchCV(Line(steepest=0.0), SLOPES, random_state=0, **limit)
    with pytest.raises(ValueError, match=r"All the 5 fits failed(.|\n)*RuntimeError: too steep"):
        search.fit(X, Y)
    assert len(search.optimizer_.trials) == limit.get("n_iter", 10)


def test_failures_are_told_once_and_summed_up():
    for model in (Line(steepest=1.0), Line(fails_from=1.0)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            search = GittinsSearchCV(model, SLOPES | {"fails_from": [1.0, 2.0]}, **SETTINGS).fit(X, Y)
        n_failed = sum(trial.state is TrialState.FAILED for trial in search.optimizer_.trials)
        assert n_failed > 2
        told = [str(warning.message) for warning in caught if warning.category is FitFailedWarning]
        assert len(told) == 2
        assert "too steep" in told[0] or "too far" in told[0]
        assert told[1] == f"{n_failed} of 9 candidates failed and were charged; see cv_results_"
        assert sum("non-finite" in str(warning.message) for warning in caught) <= 1


def test_warnings_name_the_line_of_the_user():
    with pytest.warns(FitFailedWarning) as caught:
        GittinsSearchCV(Line(steepest=1.0), SLOPES, **SETTINGS).fit(X, Y)
    assert {warning.filename for warning in caught} == {__file__}


@IGNORED
def test_a_batch_that_fails_is_charged_by_the_candidate():
    search = GittinsSearchCV(Line(steepest=0.2), SLOPES, batch_size=2, n_startup_trials=8, **SETTINGS).fit(X, Y)
    failed = [trial for trial in search.optimizer_.trials if trial.state is TrialState.FAILED]
    assert 2 <= len(failed) < 9
    assert [trial.params["slope"] for trial in search.optimizer_.trials] == search.cv_results_["param_slope"].tolist()
