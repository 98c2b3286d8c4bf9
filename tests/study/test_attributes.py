"""The names under which things are stored."""

from pbgi.study import attributes


def test_names_differ_and_tell_whose_they_are():
    """Two things under one name would overwrite each other; others read `cost`; the other two are Optuna's."""
    names = [value for name, value in vars(attributes).items() if name.isupper()]
    assert len(names) == len(set(names)) > 10
    assert [name for name in names if not name.startswith("pbgi:")] == ["cost", "constraints", "failed_trial"]
