"""What a command said, from its output or from a file; logs that give their middle back."""

import os

import pytest

from pbgi.cli.program.command import give_back
from pbgi.cli.program.result import read_result, result_in
from pbgi.errors import InvalidInputError


def test_long_logs_give_their_middle_back(tmp_path, monkeypatch):
    """While they are written: what is written next, and what was written last, stay where they are."""
    monkeypatch.setattr("pbgi.cli.program.command.KEPT", 2**20)
    path = tmp_path / "stdout.log"
    with path.open("wb", buffering=0) as log:
        log.write(b"a" * 2**20 + b"b" * 20 * 2**20 + b"c" * 2**20)
        os.fsync(log.fileno())
        before = os.fstat(log.fileno()).st_blocks
        give_back(path)
        if os.fstat(log.fileno()).st_blocks == before:
            pytest.skip("this file system knows no holes")
        assert os.fstat(log.fileno()).st_blocks * 512 < 4 * 2**20
        log.write(b"d")
    content = path.read_bytes()
    assert len(content) == 22 * 2**20 + 1
    assert content.startswith(b"a" * 2**20)
    assert content.endswith(b"c" * 2**20 + b"d")
    give_back(tmp_path / "none.log")


@pytest.mark.parametrize(
    ("output", "cost", "value", "paid", "problem"),
    [
        ('{"value": 1}', None, 1.0, None, None),
        ('{"value": 1}\nbye', None, 1.0, None, None),
        ('{"value": 1}\n{"value": 2}\n\n', None, 2.0, None, None),
        ("0.25", None, 0.25, None, None),
        ('{"value": 1}\n{"broken', None, 1.0, None, None),
        ('{"value": 1, "cost": 3}', "cost", 1.0, 3.0, None),
        ('{"value": 1, "cost": 3}', None, 1.0, None, None),
        ('{"value": 1}', "cost", None, None, "must be under the key 'cost'; got keys ['value']"),
        ('{"value": 1, "cost": -3}', "cost", None, None, "cost: cost must be a positive"),
        ('{"loss": 1}', None, None, None, "must be under the key 'value'; got keys ['loss']"),
        ('{"value": NaN, "cost": 2}', "cost", None, 2.0, "must be finite; got nan"),
        ('{"value": Infinity}', None, None, None, "must be finite; got inf"),
        ('{"value": "1"}', None, None, None, "must be a real number; got '1'"),
        ('{"value": true}', None, None, None, "must be a real number; got True"),
        ("", None, None, None, "there is none"),
        ("[1, 2]\ntrue\nnull", None, None, None, "there is none"),
        ("[" * 100_000, None, None, None, "there is none"),
        ('{"value": 1}\n' + "x" * 2**20, None, None, None, "there is none"),
        # A number is the result only as the last line.
        ("10\n20\ndiverged", None, None, None, "there is none"),
        ("10\n20\nTraceback (most recent call last):\n", None, None, None, "there is none"),
        ("10\n20\n\n  \n", None, 20.0, None, None),
        ("epoch 3\r\n0.25\r\n", None, 0.25, None, None),
        ("10\n[1, 2]", None, None, None, "there is none"),
        ("10\nnull", None, None, None, "there is none"),
        ("nan", None, None, None, "there is none"),
        ("NaN", None, None, None, "must be finite; got nan"),
        # The object with the key wins.
        ('{"value": 1.5}\n17', None, 1.5, None, None),
        ('{"value": 1.5}\n{"epoch": 17}', None, 1.5, None, None),
        ('{"value": 1.5, "cost": 2}\n{"cost": 17}\n18', "cost", 1.5, 2.0, None),
        ('{"value": 3}\n{"value": 1.5}\n17\nbye', None, 1.5, None, None),
        ('progress 50%\r{"value": 1.5}\n17', None, 1.5, None, None),
        ('{"value": 1.5, "note": "a\u2028b\x85c"}\n17', None, 1.5, None, None),
        ('{"value": null}\n17', None, None, None, "must be a real number; got None"),
        ('{"epoch": 3}\n0.25', None, 0.25, None, None),
        ('{"epoch": 3}\nbye', None, None, None, "must be under the key 'value'; got keys ['epoch']"),
        # What was spent counts, also without a value.
        ('{"cost": 2}\n{"epoch": 3}', "cost", None, 2.0, "must be under the key 'value'; got keys ['cost']"),
        ('{"cost": 2}\n0.25', "cost", None, 2.0, "must be under the key 'value'; got keys ['cost']"),
        ("0.25", "cost", None, None, "must be under the key 'cost'; got keys ['value']"),
    ],
)
def test_results(tmp_path, output, cost, value, paid, problem):
    (tmp_path / "out").write_bytes(output.encode())
    found = read_result(tmp_path / "out", None, "value", cost)
    assert (found.value, found.cost) == (value, paid)
    assert found.problem is None if problem is None else problem in found.problem


def test_result_file(tmp_path):
    path = tmp_path / "result.json"
    assert "'result.json': cannot be read" in read_result(tmp_path / "out", path, "v", None).problem
    path.write_text('{"v": 2}')
    assert read_result(tmp_path / "out", path, "v", None).value == 2.0
    path.write_text("{")
    assert "must be JSON" in read_result(tmp_path / "out", path, "v", None).problem
    path.write_text(" " * 2**21)
    assert "at most" in read_result(tmp_path / "out", path, "v", None).problem


def test_no_result():
    with pytest.raises(InvalidInputError, match="there is none"):
        result_in("done\n", "value", None)
