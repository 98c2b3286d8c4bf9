"""Ax: units, direction, cost and what is saved, compared with the index built by hand from Ax's own predictions."""

import logging
import subprocess
import sys

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import norm

pytest.importorskip("ax.api.client")

import torch
from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.core.observation import ObservationFeatures
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.utils.common.logger import set_ax_logger_levels
from ax.utils.common.random import with_rng_seed
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.utils.datasets import SupervisedDataset

from pbgi import gittins_index
from pbgi.botorch import LogExpectedImprovementPerCost, PandorasBoxGittinsIndex
from pbgi.errors import InvalidInputError
from pbgi.integrations.ax import generation_strategy, generator_spec, register, stop_signal
from pbgi.integrations.ax_inputs import gittins_inputs, with_pending

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ax"),  # Ax's use of pandas
    pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.OptimizationWarning"),
]

COST_SCALE = 2e-3
SPACE = [
    RangeParameterConfig(name="x", parameter_type="float", bounds=(-2.0, 3.0)),
    RangeParameterConfig(name="size", parameter_type="float", bounds=(1.0, 100.0), scaling="log"),
]


@pytest.fixture(autouse=True)
def _quiet():
    set_ax_logger_levels(logging.ERROR)
    yield
    set_ax_logger_levels(logging.INFO)


def loss(params):
    return 5.0 + (params["x"] - 0.7) ** 2 / 4 + 1.5 / params["size"] ** 0.5


def cost(params):
    return 0.3 * params["size"] ** 0.8


def points(n, seed=0):
    rng = np.random.default_rng(seed)
    return [{"x": x, "size": 10.0**e} for x, e in rng.uniform((-2.0, 0.0), (3.0, 2.0), (n, 2)).tolist()]


def report(params, factor=1.0):
    return {"loss": factor * loss(params), "seconds": cost(params), "gain": -factor * loss(params)}


def client_with(strategy, objective="-loss", *, n=8, factor=1.0, seed=0, parameters=SPACE, constraints=None):
    """A client that has been told the outcome of some trials."""
    client = Client(random_seed=seed)
    client.configure_experiment(parameters)
    client.configure_optimization(objective, outcome_constraints=constraints)
    client.configure_tracking_metrics([name for name in ("loss", "seconds", "gain") if name not in objective])
    client.set_generation_strategy(strategy)
    for params in points(n):
        client.complete_trial(client.attach_trial(params), raw_data=report(params, factor))
    return client


def suggest(client, n=1, factor=1.0):
    """The next points, one after the other."""
    found = []
    for _ in range(n):
        ((number, params),) = client.get_next_trials(1).items()
        client.complete_trial(number, raw_data=report(params, factor))
        found.append([params["x"], params["size"]])
    return np.array(found)


def one_node(spec):
    return GenerationStrategy(nodes=[GenerationNode(name="Search", generator_specs=[spec])])


def predictions(adapter, where, metric):
    """Ax's own prediction in the units that were reported: mean and variance."""
    means, covariances = adapter.predict([ObservationFeatures(params) for params in where])
    return np.array(means[metric]), np.array(covariances[metric][metric])


def acquisition_values(adapter, where):
    features = [ObservationFeatures(params) for params in where]
    return np.array(adapter.evaluate_acquisition_function(features, acq_options={"subset_model": False}))


@pytest.mark.parametrize("factor", [1.0, 1000.0])
@pytest.mark.parametrize(("objective", "metric"), [("-loss", "loss"), ("gain", "gain")])
def test_value_is_the_index_in_the_users_units(objective, metric, factor):
    """Minimizing a loss or maximizing a gain, on any scale."""
    strategy = generation_strategy(cost_scale=COST_SCALE * factor, cost_metric="seconds")
    client_with(strategy, objective, factor=factor)
    adapter = strategy.fit(strategy.experiment)
    where = points(40, seed=1)
    mean, variance = predictions(adapter, where, metric)
    expected_cost, _ = predictions(adapter, where, "seconds")
    sign = -1.0 if metric == "loss" else 1.0
    index = gittins_index(sign * mean, np.sqrt(variance), np.log(COST_SCALE * factor * expected_cost))

    told = np.array([sign * report(params, factor)[metric] for params in points(8)])
    in_units = told.mean() + told.std(ddof=1) * acquisition_values(adapter, where)
    np.testing.assert_allclose(in_units, index, rtol=1e-7)
    assert np.ptp(index) > told.std()  # these points are worth telling apart


def test_weighted_sum_of_metrics():
    strategy = generation_strategy(cost_scale=COST_SCALE, cost_metric="seconds")
    client_with(strategy, "2*gain - loss")
    adapter = strategy.fit(strategy.experiment)
    where = points(20, seed=1)
    (gain, gain_variance), (less, loss_variance) = (predictions(adapter, where, name) for name in ("gain", "loss"))
    expected_cost, _ = predictions(adapter, where, "seconds")
    std = np.sqrt(4 * gain_variance + loss_variance)  # Ax models metrics one by one
    index = gittins_index(2 * gain - less, std, np.log(COST_SCALE * expected_cost))
    told = np.array([-3 * loss(params) for params in points(8)])
    in_units = told.mean() + told.std(ddof=1) * acquisition_values(adapter, where)
    np.testing.assert_allclose(in_units, index, rtol=1e-7)


def test_suggestion_has_the_highest_index():
    strategy = generation_strategy(cost_scale=COST_SCALE, cost_metric="seconds")
    client = client_with(strategy)
    ((_, params),) = client.get_next_trials(1).items()
    where = [params, *points(500, seed=2)]
    mean, variance = predictions(strategy.adapter, where, "loss")
    expected_cost, _ = predictions(strategy.adapter, where, "seconds")
    index = gittins_index(-mean, np.sqrt(variance), np.log(COST_SCALE * expected_cost))
    assert index.argmax() == 0


@pytest.mark.filterwarnings("ignore:Negative variance values detected")  # Ax's report on tiny numbers, not the index
def test_units_do_not_matter():
    base = suggest(client_with(generation_strategy(cost_scale=COST_SCALE, cost_metric="seconds")), 2)
    for factor in (1000.0, 1e-6):
        strategy = generation_strategy(cost_scale=COST_SCALE * factor, cost_metric="seconds")
        np.testing.assert_allclose(suggest(client_with(strategy, factor=factor), 2, factor), base, rtol=1e-3)
    gain = client_with(generation_strategy(cost_scale=COST_SCALE, cost_metric="seconds"), "gain")
    np.testing.assert_allclose(suggest(gain, 2), base, rtol=1e-3)


def test_cost_scale_matters():
    """A test of the test above: units would not matter either if cost_scale did nothing."""
    dear, cheap = (
        suggest(client_with(generation_strategy(cost_scale=scale, cost_metric="seconds")))[0, 1] for scale in (1e-6, 1)
    )
    assert cheap < dear / 3


def test_log_expected_improvement_per_cost():
    strategy = one_node(generator_spec(LogExpectedImprovementPerCost, {"exponent": 0.5}, cost_metric="seconds"))
    client_with(strategy)
    adapter = strategy.fit(strategy.experiment)
    where = points(40, seed=1)
    mean, variance = predictions(adapter, where, "loss")
    cost_mean, cost_variance = predictions(adapter, where, "seconds")
    log_variance = np.log1p(cost_variance / cost_mean**2)
    log_mean = np.log(cost_mean) - log_variance / 2
    told = np.array([loss(params) for params in points(8)])
    std = np.sqrt(variance)
    z = (told.min() - mean) / std
    seen = z > -5  # where the textbook formula keeps its digits
    improvement = std * (norm.pdf(z) + z * np.exp(log_ndtr(z)))
    expected = np.log(improvement[seen]) + (-0.5 * log_mean + 0.125 * log_variance)[seen]
    values = acquisition_values(adapter, where)[seen] + np.log(told.std(ddof=1))
    assert seen.sum() > 5
    np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-6)


def test_without_a_cost_metric_all_points_cost_one():
    strategy = generation_strategy(cost_scale=COST_SCALE)
    client_with(strategy)
    adapter = strategy.fit(strategy.experiment)
    where = points(20, seed=1)
    mean, variance = predictions(adapter, where, "loss")
    told = np.array([-loss(params) for params in points(8)])
    in_units = told.mean() + told.std(ddof=1) * acquisition_values(adapter, where)
    np.testing.assert_allclose(in_units, gittins_index(-mean, np.sqrt(variance), np.log(COST_SCALE)), rtol=1e-7)


def test_startup_then_search():
    client = Client(random_seed=0)
    client.configure_experiment(SPACE)
    client.configure_optimization("-loss")
    strategy = generation_strategy(cost_scale=COST_SCALE, cost_metric="seconds", n_startup_trials=3, seed=4)
    client.set_generation_strategy(strategy)
    assert stop_signal(strategy) is None
    nodes = []
    for _ in range(5):
        suggest(client)
        nodes.append(strategy.current_node_name)
    assert nodes == ["Startup"] * 3 + ["PBGI"] * 2


def test_choices_and_integers():
    parameters = [
        RangeParameterConfig(name="x", parameter_type="float", bounds=(-2.0, 3.0)),
        RangeParameterConfig(name="size", parameter_type="int", bounds=(1, 100), scaling="log"),
        ChoiceParameterConfig(name="kind", parameter_type="str", values=["a", "b", "c"], is_ordered=False),
    ]
    client = Client(random_seed=0)
    client.configure_experiment(parameters)
    client.configure_optimization("-loss")
    strategy = generation_strategy(cost_scale=COST_SCALE, cost_metric="seconds", n_startup_trials=4, seed=0)
    client.set_generation_strategy(strategy)
    for _ in range(5):
        ((number, params),) = client.get_next_trials(1).items()
        assert isinstance(params["size"], int)
        assert params["kind"] in ("a", "b", "c")
        client.complete_trial(
            number, raw_data={"loss": loss(params) + (params["kind"] == "a"), "seconds": cost(params)}
        )
    assert strategy.current_node_name == "PBGI"
    assert stop_signal(strategy, n_points=32) is not None


def test_running_trials_are_not_suggested_again():
    client = client_with(generation_strategy(cost_scale=COST_SCALE, cost_metric="seconds"))
    params = list(client.get_next_trials(3).values())
    unit = np.array([[(p["x"] + 2) / 5, np.log10(p["size"]) / 2] for p in params])
    distances = np.abs(unit[:, None] - unit[None]).max(axis=2)[np.triu_indices(3, 1)]
    assert distances.min() > 1e-3


def test_pending_points_keep_the_mean_and_take_variance():
    rng = np.random.default_rng(0)
    X = torch.tensor(rng.uniform(0, 10, (8, 2)))
    Y = 100 + 20 * torch.sin(X.sum(-1, keepdim=True))
    model = SingleTaskGP(X, Y, input_transform=Normalize(2), outcome_transform=Standardize(1)).eval()
    pending, where = X[:2] + 1.0, torch.tensor(rng.uniform(0, 10, (20, 2)))
    before, after = model.posterior(where), with_pending(model, pending).posterior(where)
    np.testing.assert_allclose(after.mean.detach(), before.mean.detach(), rtol=1e-6)
    assert bool((after.variance < before.variance + 1e-9).all())
    there = [m.posterior(pending).variance.detach().sum().item() for m in (model, with_pending(model, pending))]
    assert there[1] < 0.7 * there[0]
    assert with_pending(model, None) is model


def test_saved_and_loaded_in_the_middle(tmp_path):
    client = client_with(generation_strategy(cost_scale=COST_SCALE, cost_metric="seconds"), n=6, seed=3)
    suggest(client, 2)
    client.save_to_json_file(str(tmp_path / "run.json"))
    loaded = Client.load_from_json_file(str(tmp_path / "run.json"))
    with with_rng_seed(3):  # Ax does not save the seed of a client
        ((number, params),) = loaded.get_next_trials(1).items()
    # Ax starts the fit of a model from that of the last one, which is not saved, so digits differ.
    np.testing.assert_allclose([[params["x"], params["size"]]], suggest(client), rtol=2e-2)
    loaded.complete_trial(number, raw_data=report(params))
    assert loaded.summarize()["seconds"].tolist() == pytest.approx(client.summarize()["seconds"].tolist(), rel=2e-2)
    assert set(loaded.summarize()["generation_node"].dropna()) == {"PBGI"}


def test_another_process_registers_and_loads(tmp_path):
    """What is imported changes nothing; a second `register` is no error."""
    client = client_with(generation_strategy(cost_scale=COST_SCALE, cost_metric="seconds"), n=5)
    suggest(client)
    client.save_to_json_file(str(tmp_path / "run.json"))
    code = """if True:
        import sys
        from ax.api.client import Client
        from botorch.acquisition.input_constructors import get_acqf_input_constructor
        from pbgi.botorch import PandorasBoxGittinsIndex
        import pbgi.integrations.ax as pbgi_ax
        try:
            get_acqf_input_constructor(PandorasBoxGittinsIndex)
        except RuntimeError:
            print("not registered")
        pbgi_ax.register()
        pbgi_ax.register()
        client = Client.load_from_json_file(sys.argv[1])
        print(sorted(client.get_next_trials(1)[6]))
    """
    command = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "run.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["not registered", "['size', 'x']"]


@pytest.mark.parametrize(("objective", "metric"), [("-loss", "loss"), ("gain", "gain")])
def test_stop_signal(objective, metric):
    told = [report(params, 1000.0)[metric] for params in points(8)]
    best = min(told) if metric == "loss" else max(told)
    signals = {}
    for scale in (1e-2, 1e6):
        strategy = generation_strategy(cost_scale=scale, cost_metric="seconds")
        client_with(strategy, objective, factor=1000.0)
        signals[scale] = stop_signal(strategy)
    assert [signal.stop for signal in signals.values()] == [False, True]
    for scale, signal in signals.items():
        assert signal.best_value == pytest.approx(best)
        better = signal.index < best if metric == "loss" else signal.index > best
        assert better is not signal.stop
        assert (signal.net_gain > 0) is not signal.stop
        assert cost({"size": 0.5}) < signal.predicted_cost < cost({"size": 200.0})
        assert signal.net_gain >= -scale * signal.predicted_cost


def test_stop_signal_leaves_the_random_state_alone():
    strategy = generation_strategy(cost_scale=COST_SCALE)
    client_with(strategy)
    before = torch.get_rng_state()
    stop_signal(strategy, n_points=16)
    assert torch.equal(torch.get_rng_state(), before)


def test_stop_signal_wants_the_index():
    strategy = one_node(generator_spec(LogExpectedImprovementPerCost, {}))
    client_with(strategy)
    with pytest.raises(InvalidInputError, match="must use PandorasBoxGittinsIndex"):
        stop_signal(strategy)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cost_scale": 0.0}, "cost_scale must be a positive"),
        ({"cost_scale": 1.0, "cost_metric": 3}, "cost_metric must be the name"),
        ({"cost_scale": 1.0, "n_startup_trials": 0}, "n_startup_trials must be a positive"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        generation_strategy(**arguments)


def test_standardized_data_are_refused():
    """The default transforms of Ax would change what cost_scale means after every trial."""
    register()
    kwargs = {
        "botorch_acqf_class": PandorasBoxGittinsIndex,
        "botorch_acqf_options": {"cost_scale": 1.0},
        "acquisition_options": {"subset_model": False},
    }
    strategy = one_node(GeneratorSpec(generator_enum=Generators.BOTORCH_MODULAR, generator_kwargs=kwargs))
    with pytest.raises(InvalidInputError, match=r"generator_spec"):
        client_with(strategy).get_next_trials(1)


def test_outputs_that_ax_left_away_are_noticed():
    spec = generator_spec(PandorasBoxGittinsIndex, {"cost_scale": 1.0}, cost_metric="seconds")
    spec.generator_kwargs["acquisition_options"] = {}
    with pytest.raises(InvalidInputError, match="one output per metric"):
        client_with(one_node(spec)).get_next_trials(1)


@pytest.mark.filterwarnings("ignore::ax.exceptions.core.AxOptimizationWarning", "ignore:To copy construct")
def test_several_objectives_are_refused():
    with pytest.raises(InvalidInputError, match="several objectives"):
        client_with(generation_strategy(cost_scale=1.0), "-loss, gain").get_next_trials(1)


def test_outcome_constraints_are_refused():
    client = client_with(generation_strategy(cost_scale=1.0), constraints=["seconds <= 100"])
    with pytest.raises(InvalidInputError, match="outcome constraints are not supported"):
        client.get_next_trials(1)


def test_costs_must_be_reported_and_positive():
    with pytest.raises(InvalidInputError, match="'dollars', which no trial has reported"):
        client_with(generation_strategy(cost_scale=1.0, cost_metric="dollars")).get_next_trials(1)
    with pytest.raises(InvalidInputError, match="'gain' has -"):
        client_with(generation_strategy(cost_scale=1.0, cost_metric="gain")).get_next_trials(1)


def test_a_trial_without_a_cost_is_no_obstacle():
    strategy = generation_strategy(cost_scale=COST_SCALE, cost_metric="seconds")
    client = client_with(strategy)
    params = points(1, seed=9)[0]
    client.complete_trial(client.attach_trial(params), raw_data={"loss": loss(params)})
    assert suggest(client).shape == (1, 2)


def test_unknown_cost_metric_of_a_model():
    X = torch.rand(4, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    model = SingleTaskGP(X, 3 * X)
    dataset = SupervisedDataset(X, 3 * X, feature_names=["x"], outcome_names=["loss"])
    with pytest.raises(InvalidInputError, match=r"trials report \(loss\); got 'seconds'"):
        gittins_inputs(model, dataset, 1.0, "seconds")


@pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")
@pytest.mark.filterwarnings("ignore:`is_ordered` is not specified")  # of two choices, where it makes no difference
def test_parameters_that_depend_on_a_choice():
    client = Client(random_seed=0)
    branches = {"svm": ["C"], "forest": ["depth"]}
    client.configure_experiment(
        [
            ChoiceParameterConfig(
                name="model", values=["svm", "forest"], parameter_type="str", dependent_parameters=branches
            ),
            RangeParameterConfig(name="C", parameter_type="float", bounds=(1e-3, 1e3), scaling="log"),
            RangeParameterConfig(name="depth", parameter_type="int", bounds=(1, 20)),
        ]
    )
    client.configure_optimization("-loss")
    client.configure_tracking_metrics(["seconds"])
    client.set_generation_strategy(
        generation_strategy(cost_scale=1e-3, cost_metric="seconds", n_startup_trials=4, seed=0)
    )
    for _ in range(6):
        for number, params in client.get_next_trials(max_trials=1).items():
            assert params.keys() == {"model", *branches[params["model"]]}
            loss = params["depth"] / 20 if params["model"] == "forest" else 0.5
            client.complete_trial(number, raw_data={"loss": loss, "seconds": 1.0 + loss})
