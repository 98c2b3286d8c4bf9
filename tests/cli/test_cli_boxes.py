"""`pbgi boxes`: a problem in TOML, solved."""

import pytest
from cli_runs import write_job
from command_line import said

from pbgi.pandora import Box, Discrete, Gaussian, solve

BOXES = """
budget = 200.0
[[box]]
name = "Steady & Sons"
cost = 90.0
reward = { gaussian = [62.0, 4.0] }
[[box]]
cost = 180.0
reward = { values = [20.0, 105.0], probabilities = [0.8, 0.2] }
[[box]]
cost = { gamma = { a = 2.0, scale = 30.0 } }
[box.reward]
samples = [48.0, 57.0, 61.0, 66.0, 72.0]
"""


def test_boxes(tmp_path, capfd):
    path = write_job(tmp_path, BOXES, "boxes.toml")
    boxes = [Box(Gaussian(62, 4), 90), Box(Discrete([20, 105], [0.8, 0.2]), 180), Box([48, 57, 61, 66, 72], 60)]
    plan = solve(boxes, budget=200)
    found = said(capfd, "boxes", path)
    assert [entry["box"] for entry in found["order"]] == list(plan.order)
    assert [entry["index"] for entry in found["order"]] == pytest.approx([plan.indices[i] for i in plan.order])
    assert {entry["name"] for entry in found["order"]} == {"Steady & Sons", "box 1", "box 2"}
    for key in ("value", "spend", "net", "cost_scale", "go_on_probability", "slack"):
        assert found[key] == pytest.approx(getattr(plan, key))
    rich = said(capfd, "boxes", path, "--budget", 330)
    assert rich["slack"] is True
    # A Gaussian prize has no bound; the others are worth their largest value.
    assert {entry["box"]: entry["index"] for entry in rich["order"]} == {0: None, 1: 105.0, 2: 72.0}
    game = said(capfd, "boxes", path, "--play", 0)["game"]
    assert game == said(capfd, "boxes", path, "--play", 0)["game"]
    assert game["spent"] == pytest.approx(sum(opening["cost"] for opening in game["openings"]))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "box: there must be at least one [[box]]"),
        ("[[box]]\ncost = 1\n", ":1: box[0]: needs a reward"),
        ("[[box]]\ncost = -1\nreward = { gaussian = [0.0, 1.0] }\n", ":1: box[0]: cost must be positive"),
        (BOXES + "[[box]]\ncost = 1\nreward = { gauss = [1] }\n", ":16: box[3].reward: must be gaussian"),
        (BOXES + "[[box]]\ncost = 1\nreward = { samples = [] }\n", ":14: box[3]"),
        (BOXES.replace("0.8", "0.9"), ":9: box[1].reward: probabilities must sum to one"),
        (BOXES.replace("a = 2.0", "b = 2.0"), ":11: box[2].cost"),
        (BOXES.replace("200.0", "20.0"), ":2: budget: budget must be at least the cost of the cheapest box"),
        ("color = 1\n" + BOXES, ":1: color: no such key"),
        ("cost_scale = 1\n" + BOXES, "give cost_scale or budget, not both"),
        ("[[box]]\ncost = 1\nreward = { test = [1] }\n", ":3: box[0].reward: must be gaussian"),
    ],
)
def test_mistakes_in_boxes(tmp_path, capfd, text, says):
    path = write_job(tmp_path, text, "boxes.toml")
    err = said(capfd, "boxes", path, status=2)
    assert err.startswith(f"pbgi: {path}")
    assert says in err
