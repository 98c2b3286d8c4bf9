"""What is stored of a suggestion: checked when it is read, whoever wrote it."""

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import create_trial

import pbgi
from pbgi.integrations.optuna import PBGISampler, cost_summary
from pbgi.study.suggestion import suggestion_of


@pytest.mark.parametrize(
    ("stored", "says"),
    [
        ({"params": {}, "color": 1}, "unknown: 'color'"),
        ({"params": {}, "format": 2}, "got format 2"),
        ({"params": {"x": "much"}}, "got params="),
        ({"params": {}, "predicted_cost": "1"}, "got predicted_cost='1'"),
        ({"params": {}, "record": [1]}, r"got record=\[1\]"),
        ("point", "got 'point'"),
    ],
)
def test_what_another_version_has_stored_is_one_clear_error(stored, says):
    study = optuna.create_study(sampler=PBGISampler(seed=0, search_space={"x": FloatDistribution(0.0, 1.0)}))
    trial = create_trial(value=1.0, system_attrs={"pbgi:trial": stored})
    study.add_trial(trial)
    with pytest.raises(pbgi.InvalidInputError, match=f"attribute 'pbgi:trial' of trial 0 must be of format 1; {says}"):
        cost_summary(study)
    with pytest.raises(pbgi.InvalidInputError, match="another version of pbgi wrote it, or it is damaged"):
        study.ask({"x": FloatDistribution(0.0, 1.0)})


def test_what_was_stored_before_there_was_a_format_is_read():
    study = optuna.create_study(sampler=PBGISampler(seed=0))
    old = {"params": {"x": 0.5}, "predicted_cost": 2.0, "priced": False, "record": {}, "refused": None}
    study.add_trial(create_trial(value=1.0, system_attrs={"pbgi:trial": old}))
    assert suggestion_of(study.trials[0]).predicted_cost == 2.0
    study.ask({"x": FloatDistribution(0.0, 1.0)})
    assert study.trials[1].system_attrs["pbgi:trial"]["format"] == 1
