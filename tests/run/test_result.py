"""What a run leaves behind."""

import sys

import pytest

import pbgi


def test_a_missing_package_is_named(monkeypatch):
    result = pbgi.minimize(lambda p: p["x"], {"x": pbgi.Float(0, 1)}, stop=pbgi.MaxTrials(2), seed=0)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"Result.to_dataframe\(\) needs pandas: pip install pandas") as caught:
        result.to_dataframe()
    assert isinstance(caught.value, pbgi.MissingPackageError)
