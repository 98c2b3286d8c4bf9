"""Pest Control: prices by hand, spread in closed form, and the published level of the start."""

import math

import numpy as np
import pytest

from pbgi import InvalidInputError
from pbgi.problems import pest_control
from pbgi.problems.pest_control import infestation, simulated_fields, total_price

# The best of the 52 starting points of the paper's seeds 0 to 15 (the point of a scrambled 1300-dimensional Sobol
# sequence that BoTorch's `draw_sobol_samples(bounds, n=1, q=52)` gives after `torch.manual_seed(seed)`), and the
# quartiles of their values, where all curves of the paper's figure begin.
PUBLISHED_STARTS = [
    "0241330442332441341423140",
    "1401424413432241424400240",
    "2403343034103314234303300",
    "4144434032442422333312014",
    "3013314133330343133142130",
    "1430342304422301303430333",
    "2104203333442434312302130",
    "2441033431443232323300020",
    "4242244320123223230420340",
    "4324243031243013304244340",
    "4314344443330414302203240",
    "3404434043414344033034030",
    "2442434104343023234043034",
    "2444012141334443120304000",
    "2243003341404412030324400",
    "0033433034331314331344333",
]
PUBLISHED_QUARTILES = (-17.0602, -16.7808, -16.562)


def categories(plan):
    return {f"x{k}": int(choice) for k, choice in enumerate(plan)}


def numbers(plan):
    return {f"x{k}": (int(choice) + 0.5) / 5 for k, choice in enumerate(plan)}


def test_start_has_the_published_level():
    problem = pest_control(categorical=True)
    values = [problem.evaluate(categories(plan)).value for plan in PUBLISHED_STARTS]
    assert np.quantile(values, [0.25, 0.5, 0.75]) == pytest.approx(PUBLISHED_QUARTILES, abs=5e-5)


@pytest.mark.parametrize(
    ("plan", "price"),
    [
        ("0" * 25, 0.0),
        ("1" * 25, 25 * 1.0 * 0.8),
        ("2" * 25, 25 * 0.8 * 0.7),
        ("3" * 25, 25 * 0.7 * 0.7),
        ("4" * 25, 25 * 0.5),
        ("4" + "0" * 24, 0.5),
        ("1" * 10 + "2" * 5 + "0" * 10, 9.2 + 3.76),  # 10 (1 - 0.2 * 10/25) and 5 * 0.8 (1 - 0.3 * 5/25)
        ("30" * 12 + "4", 12 * 0.7 * 0.856 + 0.5),  # 1 - 0.3 * 12/25 = 0.856
    ],
)
def test_price_by_hand(plan, price):
    assert float(total_price(np.array(list(map(int, plan))))) == pytest.approx(price, abs=1e-12)
    paid = pest_control(cost="varying", categorical=True).evaluate(categories(plan)).cost
    assert paid == pytest.approx(max(price, 0.5), abs=1e-12)


def test_no_plan_but_the_empty_one_costs_as_little():
    problem = pest_control(cost="varying", categorical=True)
    assert problem.evaluate(categories("0" * 25)).cost == 0.5
    for k in "1234":
        assert problem.evaluate(categories(k + "0" * 24)).cost >= 0.5


def test_untreated_pest_spreads_as_in_closed_form():
    """After t stages without treatment a share (1 - initial) (1 - spread)^t of the plants is healthy."""
    initial, spread = (np.random.RandomState(1).beta(1.0, b, 100) for b in (30.0, 17 / 3))
    infested = [np.mean(1 - (1 - initial) * (1 - spread) ** stage > 0.1) for stage in range(25)]
    assert infested == sorted(infested)
    assert infested[-1] > 0.9 > 0.1 > infested[0]
    value = pest_control().evaluate(numbers("0" * 25)).value
    assert value == pytest.approx(-sum(infested), abs=1e-12)


def test_treatment_kills_and_the_pest_grows_resistant():
    """With one pesticide for ever, the rates are Beta(1, b): mean 1 / (1 + b), b growing with each use."""
    control = simulated_fields(7).control
    for k, b, growth in ((1, 2 / 7, 1 / 7), (2, 3 / 7, 2.5 / 7), (3, 3 / 7, 2 / 7), (4, 5 / 7, 0.5 / 7)):
        for uses in (0, 24):
            b_now = b + growth * uses / 25
            std = math.sqrt(b_now / (1 + b_now) ** 2 / (2 + b_now))
            assert abs(control[k, uses].mean() - 1 / (1 + b_now)) < 4 * std / math.sqrt(100)
    for k in (1, 2, 3, 4):
        assert infestation(np.full(25, k), 1) < infestation(np.zeros(25, dtype=int), 1)


def test_all_treated_costs_more_and_is_better_off():
    problem = pest_control(cost="varying")
    nothing, treated = (problem.evaluate(numbers(k * 25)) for k in "04")
    assert treated.cost > nothing.cost
    assert treated.value > nothing.value


def test_infestation_counts_the_fields_before_each_stage():
    initial = np.mean(np.random.RandomState(1).beta(1.0, 30.0, 100) > 0.1)
    by_treatment = {infestation(np.array([k]), 1) for k in range(5)}
    assert by_treatment == {initial}  # what is done at the last stage comes too late to count


def test_numbers_mean_the_floor_of_five_times_themselves():
    one, other = pest_control(cost="varying"), pest_control(cost="varying", categorical=True)
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = rng.random(25)
        x[:3] = 0.0, 1.0, 0.2  # at 1 the last choice; at 0.2 the second
        plan = [min(int(5 * value), 4) for value in x]
        assert plan[:3] == [0, 4, 1]
        assert one.evaluate({f"x{k}": float(v) for k, v in enumerate(x)}) == other.evaluate(categories(plan))


def test_seed_changes_the_fields():
    plan = categories(PUBLISHED_STARTS[0])
    values = {pest_control(seed=seed, categorical=True).evaluate(plan).value for seed in range(4)}
    assert len(values) > 1
    assert pest_control().evaluate(numbers(PUBLISHED_STARTS[0])).value in values  # seed 1


def test_budgets_and_refusals():
    assert (pest_control().budget, pest_control(cost="varying").budget) == (100.0, 800.0)
    with pytest.raises(InvalidInputError, match="cost must be one of uniform, varying"):
        pest_control(cost="unknown")
    with pytest.raises(InvalidInputError, match="seed"):
        pest_control(seed=2**32)
