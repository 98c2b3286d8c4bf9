"""Numbers and tables as Markdown."""

import pytest

from paper.markdown import duration, markdown_table, middle, number


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.0, "0"),
        (0.0339, "0.0339"),
        (-11.82, "-11.8"),
        (505537.0, "506,000"),
        (3e-6, "3.00e-06"),
        (1.0, "1"),
        (20.0, "20"),
    ],
)
def test_numbers_can_be_read(x, text):
    assert number(x) == text


def test_durations_and_tables():
    assert middle((0.5, 0.4, 0.625)) == "0.5 [0.4, 0.625]"
    assert [duration(seconds) for seconds in (1.5, 90.0, 300.0, 3 * 3600.0)] == ["1.5 s", "90 s", "5.0 min", "3.0 h"]
    assert markdown_table(("a", "b"), [("1", "2")]) == "| a | b |\n| --- | ---: |\n| 1 | 2 |\n"
