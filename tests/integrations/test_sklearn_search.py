"""GittinsSearchCV: what it charges, when it stops, what it suggests, and what scikit-learn expects of a search.

`Line(slope)` predicts slope * x where y = 3 x, so its score is the larger the nearer the slope is to 3.
"""

import math
import subprocess
import sys
from inspect import signature

import joblib
import numpy as np
import pytest

pytest.importorskip("sklearn")

import sklearn
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer
from sklearn.model_selection import GroupKFold, KFold, RandomizedSearchCV, ShuffleSplit, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator
from sklearn_fixtures import SLOPES, Line, X, Y, price, price_of_model

import pbgi
from pbgi import Float, KnownCost, MaxTrials, UniformCost
from pbgi.errors import InvalidInputError, NothingLeftError, UnknownArgumentError
from pbgi.integrations.sklearn import GittinsSearchCV

METRICS = {"r2": "r2", "error": "neg_mean_absolute_error"}


def points(search):
    return [dict(trial.params) for trial in search.optimizer_.trials]


# The budget ----------------------------------------------------------------------------------------------------------


def test_what_is_charged_is_the_seconds_of_all_folds():
    search = GittinsSearchCV(Ridge(), {"alpha": Float(1e-3, 1e3, log=True)}, n_iter=6, cv=4, random_state=0).fit(X, Y)
    results = search.cv_results_
    seconds = 4 * (results["mean_fit_time"] + results["mean_score_time"])
    assert [trial.cost for trial in search.optimizer_.trials] == pytest.approx(seconds.tolist())
    assert search.spent_ == pytest.approx(seconds.sum())


def test_a_budget_of_seconds_ends_the_search():
    search = GittinsSearchCV(Ridge(), {"alpha": Float(1e-3, 1e3, log=True)}, budget=0.05, random_state=0).fit(X, Y)
    costs = [trial.cost for trial in search.optimizer_.trials]
    assert search.stop_reason_.rule == "BudgetSpent"
    assert sum(costs[:-1]) < 0.05  # only the last one may have cost more than was expected
    assert search.spent_ == pytest.approx(sum(costs))


def test_a_known_price_is_never_overspent():
    search = GittinsSearchCV(Line(), SLOPES, budget=20.0, cost=KnownCost(price), random_state=0).fit(X, Y)
    assert search.spent_ == pytest.approx(sum(point["slope"] for point in points(search)))
    assert search.spent_ <= 20.0
    assert search.stop_reason_.rule == "BudgetSpent"
    assert search.best_params_["slope"] == pytest.approx(3.0, rel=0.1)


def test_trials_are_the_rows_of_the_results():
    search = GittinsSearchCV(Line(), SLOPES, n_iter=7, random_state=0).fit(X, Y)
    assert points(search) == search.cv_results_["params"]
    assert [trial.value for trial in search.optimizer_.trials] == search.cv_results_["mean_test_score"].tolist()
    assert search.optimizer_.best.number == search.best_index_
    assert search.optimizer_.best.value == search.best_score_


def test_n_iter_caps_what_the_budget_would_pay_for():
    search = GittinsSearchCV(Line(), SLOPES, budget=100, n_iter=4, cost=UniformCost(), random_state=0).fit(X, Y)
    assert len(search.cv_results_["params"]) == 4
    assert search.stop_reason_.rule == "MaxTrials"
    assert search.spent_ == 4.0


def test_n_iter_does_not_replace_the_rule_of_an_exchange_rate():
    dear = pbgi.PBGI(cost_scale=1e6)
    search = GittinsSearchCV(Line(), SLOPES, n_iter=40, policy=dear, cost=UniformCost(), random_state=0).fit(X, Y)
    assert search.stop_reason_.rule == "GittinsStop"
    assert len(search.cv_results_["params"]) < 40
    assert "worth its price" in str(search.stop_reason_)


def test_a_finite_space_ends_when_all_is_tried():
    search = GittinsSearchCV(Line(), {"slope": [1.0, 2.0, 3.0]}, n_iter=10, random_state=0).fit(X, Y)
    assert sorted(point["slope"] for point in points(search)) == [1.0, 2.0, 3.0]
    assert search.stop_reason_.rule == "SpaceExhausted"
    assert search.best_params_ == {"slope": 3.0}


def test_one_fixed_point_is_evaluated_once():
    search = GittinsSearchCV(Line(), {"slope": 2.0}, budget=1.0).fit(X, Y)
    assert search.cv_results_["params"] == [{"slope": 2.0}]


# What is suggested ---------------------------------------------------------------------------------------------------


def test_suggestions_are_those_of_the_engine():
    """The same search by hand: `minimize` with scikit-learn's own cross-validation."""
    space, cv, cost = SLOPES | {"idle": pbgi.Integer(0, 5)}, KFold(3), KnownCost(price)
    by_hand = pbgi.minimize(
        lambda params: cross_val_score(Line(**params), X, Y, cv=cv).mean(),
        space,
        direction="maximize",
        budget=30.0,
        cost=cost,
        seed=3,
    )
    search = GittinsSearchCV(Line(), space, budget=30.0, cost=cost, cv=cv, random_state=3).fit(X, Y)
    assert points(search) == [dict(trial.params) for trial in by_hand.trials]
    assert search.best_params_ == by_hand.params
    assert str(search.stop_reason_) == by_hand.message


@pytest.mark.parametrize("make", [lambda: 5, lambda: np.random.RandomState(5), lambda: np.int64(5)])
def test_the_same_random_state_suggests_the_same(make):
    first, second = (
        GittinsSearchCV(Line(), SLOPES, budget=15.0, cost=KnownCost(price), random_state=make()).fit(X, Y)
        for _ in range(2)
    )
    other = GittinsSearchCV(Line(), SLOPES, budget=15.0, cost=KnownCost(price), random_state=6).fit(X, Y)
    assert points(first) == points(second) != points(other)


def test_global_random_state_is_left_alone():
    before = np.random.get_state()[1].tolist()  # noqa: NPY002 (the global state is the subject)
    GittinsSearchCV(Line(), SLOPES, n_iter=3).fit(X, Y)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_candidates_see_the_same_folds_also_of_a_splitter_that_shuffles():
    space = {"idle": pbgi.Integer(0, 100)}  # changes nothing: only other folds could change the score
    noise = np.random.default_rng(0).normal(size=len(Y))
    search = GittinsSearchCV(Line(), space, n_iter=5, cv=ShuffleSplit(3), random_state=0).fit(X, Y + noise)
    for fold in range(3):
        assert len(set(search.cv_results_[f"split{fold}_test_score"])) == 1
    assert len({search.cv_results_[f"split{fold}_test_score"][0] for fold in range(3)}) == 3


@pytest.mark.parametrize("cv", [2, list(KFold(2).split(X)), "generator"])
def test_splits_may_be_given_as_scikit_learn_takes_them(cv):
    cv = KFold(2).split(X) if cv == "generator" else cv
    search = GittinsSearchCV(Line(), SLOPES, n_iter=3, cv=cv, random_state=0).fit(X, Y)
    slope = search.cv_results_["params"][2]["slope"]
    assert search.cv_results_["mean_test_score"][2] == cross_val_score(Line(slope), X, Y, cv=2).mean()


def test_a_batch_is_chosen_together_and_never_the_same_point_twice():
    cost = KnownCost(price)
    settings = {"n_iter": 7, "batch_size": 3, "n_startup_trials": 3, "cost": cost, "random_state": 0}
    search = GittinsSearchCV(Line(), SLOPES, **settings).fit(X, Y)
    by_hand = pbgi.Optimizer(SLOPES, direction="maximize", cost=cost, n_startup_trials=3, seed=0)
    for size in (3, 3, 1):
        for trial in by_hand.ask(size):
            by_hand.tell(trial, cross_val_score(Line(**trial.params), X, Y).mean())
    assert points(search) == [dict(trial.params) for trial in by_hand.trials]
    assert len({point["slope"] for point in points(search)}) == 7


def test_folds_in_other_processes_change_nothing():
    searches = [
        GittinsSearchCV(
            Ridge(), {"alpha": Float(0.1, 10.0)}, n_iter=4, cost=UniformCost(), n_jobs=n_jobs, random_state=0
        )
        for n_jobs in (None, 2)
    ]
    alone, together = (search.fit(X, Y) for search in searches)
    assert points(alone) == points(together)


def test_objects_may_be_chosen():
    data, kinds = load_iris(return_X_y=True)
    models = [DummyClassifier(), DecisionTreeClassifier(random_state=0), LogisticRegression(max_iter=2000)]
    pipeline = Pipeline([("scale", StandardScaler()), ("model", DummyClassifier())])
    space = {"model": models, "scale": [StandardScaler(), "passthrough"]}
    search = GittinsSearchCV(pipeline, space, n_iter=6, random_state=0).fit(data, kinds)
    scores = search.cv_results_["mean_test_score"]
    for params, score in zip(search.cv_results_["params"], scores, strict=True):
        assert score == pytest.approx(
            cross_val_score(clone(pipeline).set_params(**clone(params, safe=False)), data, kinds).mean()
        )
    assert search.best_params_["model"] in models[1:]
    assert type(search.best_estimator_["model"]) is type(search.best_params_["model"])
    assert not hasattr(models[1], "tree_")  # what the user gave is not fitted
    assert search.predict(data).shape == kinds.shape


def test_a_price_of_objects():
    pipeline = Pipeline([("model", DummyClassifier())])
    space = {"model": [DummyClassifier(), DecisionTreeClassifier(), LogisticRegression(max_iter=2000)]}
    cost = KnownCost(price_of_model)
    search = GittinsSearchCV(pipeline, space, budget=45.0, cost=cost, random_state=0).fit(*load_iris(return_X_y=True))
    tried = {type(params["model"]).__name__ for params in search.cv_results_["params"]}
    assert len(tried) == 2  # all three would cost 58
    assert search.spent_ == pytest.approx(sum(1.0 + len(name) for name in tried))


# Metrics -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METRICS)
def test_of_several_metrics_the_one_to_refit_is_maximized(name):
    search = GittinsSearchCV(Line(), SLOPES, n_iter=5, scoring=METRICS, refit=name, random_state=0).fit(X, Y)
    scores = search.cv_results_[f"mean_test_{name}"]
    assert [trial.value for trial in search.optimizer_.trials] == scores.tolist()
    assert search.best_score_ == scores.max()
    assert search.multimetric_


def several_metrics(model, X, y):
    return {name: get_scorer(scorer)(model, X, y) for name, scorer in METRICS.items()}


def test_a_function_may_return_several_metrics():
    search = GittinsSearchCV(Line(), SLOPES, n_iter=4, scoring=several_metrics, refit="error", random_state=0).fit(X, Y)
    scores = search.cv_results_["mean_test_error"]
    assert [trial.value for trial in search.optimizer_.trials] == scores.tolist()


@pytest.mark.parametrize("scoring", [METRICS, several_metrics])
@pytest.mark.parametrize("refit", [False, lambda _results: 0])
def test_several_metrics_and_none_named_is_refused(scoring, refit):
    with pytest.raises(InvalidInputError, match="refit must be the name of the one to maximize"):
        GittinsSearchCV(Line(), SLOPES, n_iter=4, scoring=scoring, refit=refit).fit(X, Y)


def test_a_name_that_a_function_does_not_return_is_refused():
    with pytest.raises(InvalidInputError, match=r"refit must name one of the metrics, \['r2', 'error'\]; got 'f1'"):
        GittinsSearchCV(Line(), SLOPES, n_iter=4, scoring=several_metrics, refit="f1").fit(X, Y)


def test_one_metric_without_refit_and_with_a_rule_of_ones_own():
    plain = GittinsSearchCV(Line(), SLOPES, n_iter=4, refit=False, random_state=0).fit(X, Y)
    assert not hasattr(plain, "best_estimator_")
    assert plain.best_score_ == plain.cv_results_["mean_test_score"].max()
    last = GittinsSearchCV(Line(), SLOPES, n_iter=4, refit=lambda results: len(results["params"]) - 1).fit(X, Y)
    assert last.best_index_ == 3
    assert last.best_estimator_.slope == last.cv_results_["params"][3]["slope"]


# What scikit-learn expects -------------------------------------------------------------------------------------------


def test_sample_weights_arrive():
    weights = np.arange(len(Y)) + 1.0
    search = GittinsSearchCV(Line(), SLOPES, n_iter=2, random_state=0).fit(X, Y, sample_weight=weights)
    assert search.best_estimator_.weight_ == weights.sum()


def test_groups_decide_the_folds():
    groups = np.arange(len(Y)) % 3
    search = GittinsSearchCV(Line(), SLOPES, n_iter=2, cv=GroupKFold(3), random_state=0).fit(X, Y, groups=groups)
    slope = search.cv_results_["params"][1]["slope"]
    expected = cross_val_score(Line(slope), X, Y, cv=GroupKFold(3), groups=groups).mean()
    assert search.cv_results_["mean_test_score"][1] == expected


def test_metadata_is_routed():
    weights = np.arange(len(Y)) + 1.0
    with sklearn.config_context(enable_metadata_routing=True):
        model = Line().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GittinsSearchCV(model, SLOPES, n_iter=2, random_state=0).fit(X, Y, sample_weight=weights)
        assert search.best_estimator_.weight_ == weights.sum()
        with pytest.raises(TypeError, match="unexpected argument"):
            GittinsSearchCV(Line(), SLOPES, n_iter=2).fit(X, Y, unheard_of=weights)


def test_sparse_data():
    search = GittinsSearchCV(Ridge(), {"alpha": Float(0.1, 10.0)}, n_iter=2, random_state=0).fit(csr_matrix(X), Y)
    assert search.predict(csr_matrix(X)).shape == Y.shape


def test_around_a_pipeline_inside_one_and_inside_another_search():
    inner = Pipeline([("scale", StandardScaler()), ("ridge", Ridge())])
    search = GittinsSearchCV(inner, {"ridge__alpha": Float(1e-3, 1e3, log=True)}, n_iter=3, random_state=0)
    outer = Pipeline([("scale", StandardScaler()), ("search", search)]).fit(X, Y)
    assert outer["search"].best_params_.keys() == {"ridge__alpha"}
    assert outer.score(X, Y) > 0.9
    assert cross_val_score(outer, X, Y, cv=2).shape == (2,)


def test_clone_parameters_and_text():
    search = GittinsSearchCV(Line(), SLOPES, budget=3.0, policy=pbgi.PBGID(), stop=MaxTrials(3), random_state=1)
    copy = clone(search)
    assert copy.get_params()["search_space"] == SLOPES
    assert copy.get_params()["policy"] == pbgi.PBGID()
    assert not hasattr(clone(search.fit(X, Y)), "spent_")
    assert copy.set_params(budget=5.0, estimator__slope=2.0).budget == 5.0
    assert copy.estimator.slope == 2.0
    assert "GittinsSearchCV(budget=5.0" in repr(copy)
    assert "GittinsSearchCV" in copy._repr_html_()


def test_a_fitted_search_survives_joblib(tmp_path):
    space = {"model": [DummyClassifier(), DecisionTreeClassifier(random_state=0)]}
    search = GittinsSearchCV(
        Pipeline([("model", DummyClassifier())]), space, n_iter=2, cost=KnownCost(price_of_model), random_state=0
    )
    data, kinds = load_iris(return_X_y=True)
    search.fit(data, kinds)
    joblib.dump(search, tmp_path / "search")
    loaded = joblib.load(tmp_path / "search")
    assert loaded.predict(data).tolist() == search.predict(data).tolist()
    assert loaded.optimizer_.trials == search.optimizer_.trials
    assert (loaded.spent_, loaded.stop_reason_) == (search.spent_, search.stop_reason_)


def test_progress_is_printed(capsys):
    GittinsSearchCV(Line(), SLOPES, budget=4, cost=UniformCost(), verbose=1, random_state=0).fit(X, Y)
    lines = [line for line in capsys.readouterr().out.splitlines() if " | best " in line]
    assert [float(line.split()[0]) for line in lines] == [1.0, 2.0, 3.0, 4.0]
    GittinsSearchCV(Line(), SLOPES, n_iter=2, random_state=0).fit(X, Y)
    assert capsys.readouterr().out == ""


def passed(search):
    """The names of scikit-learn's checks that an estimator passes."""
    if "on_fail" in signature(check_estimator).parameters:
        outcomes = check_estimator(search, on_fail=None, on_skip=None)
        found = {outcome["check_name"] for outcome in outcomes if outcome["status"] == "passed"}
    else:  # scikit-learn 1.5 raises the first failure instead, or hands out the checks
        outcomes = list(check_estimator(search, generate_only=True))
        found = {check.func.__name__ for estimator, check in outcomes if does_pass(estimator, check)}
    assert len(outcomes) > 30
    return found


def does_pass(estimator, check):
    try:
        check(estimator)
    except Exception:
        return False
    return True


@pytest.mark.parametrize(
    ("model", "space", "error_score"),
    [
        (Ridge(), {"alpha": [0.1, 1.0]}, math.nan),
        (LogisticRegression(), {"C": [0.1, 1.0]}, "raise"),
    ],
)
@pytest.mark.filterwarnings("ignore")  # checks provoke them
def test_passes_the_checks_that_randomized_search_passes(model, space, error_score):
    settings = {"n_iter": 2, "cv": 2, "random_state": 0, "error_score": error_score}
    expected = passed(RandomizedSearchCV(model, space, **settings))
    assert expected - passed(GittinsSearchCV(model, space, **settings)) == set()


# What is refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "a search must end: give budget="),
        ({"budget": -1.0}, "budget must be a positive, finite number; got -1.0"),
        ({"n_iter": 0}, "n_iter must be a positive whole number; got 0"),
        ({"n_iter": 3, "batch_size": 0}, "batch_size must be a positive whole number; got 0"),
        ({"n_iter": 3, "random_state": "a"}, "seed must be a whole number"),
        ({"n_iter": 3, "policy": "pbgi"}, "policy must be None or an object with propose"),
        ({"n_iter": 3, "cost": 3.0}, "cost must be None or an object with fit"),
    ],
)
def test_settings_are_checked_before_anything_is_fitted(settings, message):
    class Untouched(Line):
        def fit(self, *_args):
            raise AssertionError("was fitted")

    with pytest.raises(InvalidInputError, match=message):
        GittinsSearchCV(Untouched(), SLOPES, **settings).fit(X, Y)


def test_an_unknown_argument_is_refused_with_what_was_meant():
    with pytest.raises(UnknownArgumentError, match="did you mean 'budget'"):
        GittinsSearchCV(Line(), SLOPES, bugdet=3)


def test_an_unknown_parameter_of_the_estimator_is_refused_by_scikit_learn():
    with pytest.raises(ValueError, match="Invalid parameter 'slop'"):
        GittinsSearchCV(Line(), {"slop": Float(0.0, 1.0)}, n_iter=3).fit(X, Y)


def test_a_budget_that_pays_for_nothing_is_told():
    with pytest.raises(NothingLeftError, match="no candidate was evaluated: no trial is expected to fit"):
        GittinsSearchCV(Line(), SLOPES, budget=0.01, cost=KnownCost(price)).fit(X, Y)


def test_without_scikit_learn_the_extra_is_named():
    code = "import sys; sys.modules['sklearn'] = None; import pbgi.integrations.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install scikit-learn" in done.stderr


def test_a_list_of_spaces_is_searched_as_one():
    spaces = [
        {"model": [LogisticRegression(max_iter=5000)], "model__C": Float(1e-2, 1e1, log=True)},
        {"model": [DecisionTreeClassifier(random_state=0)], "model__max_depth": [1, 2, 3]},
    ]
    iris = load_iris(return_X_y=True)
    search = GittinsSearchCV(Pipeline([("model", LogisticRegression())]), spaces, n_iter=9, cv=3, random_state=0).fit(
        *iris
    )
    results = search.cv_results_
    assert {type(p["model"]).__name__ for p in results["params"]} == {"LogisticRegression", "DecisionTreeClassifier"}
    has_c = [isinstance(p["model"], LogisticRegression) for p in results["params"]]
    assert [("model__C" in p, "model__max_depth" in p) for p in results["params"]] == [(c, not c) for c in has_c]
    assert results["param_model__C"].mask.tolist() == [not c for c in has_c]
    assert search.best_score_ > 0.9
    assert search.best_params_.keys() == results["params"][search.best_index_].keys()


def test_the_name_of_randomized_search_is_taken():
    """The same search by either name; one of them must be given."""
    found = [
        GittinsSearchCV(Line(), **{name: SLOPES}, n_iter=2, random_state=0).fit(X, Y)
        for name in ("search_space", "param_distributions")
    ]
    assert found[0].cv_results_["params"] == found[1].cv_results_["params"]
    assert clone(found[1]).param_distributions == SLOPES
    for both in ({}, {"search_space": SLOPES, "param_distributions": SLOPES}):
        with pytest.raises(InvalidInputError, match="search_space must be given, or param_distributions"):
            GittinsSearchCV(Line(), **both, n_iter=2).fit(X, Y)
