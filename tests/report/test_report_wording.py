"""Numbers and names as people read them."""

import pytest
from report_runs import HOSTILE

from pbgi.display.wording import number, text
from pbgi.report.wording import amount, label, labels, share


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (-0.5, "-0.5"),
        (12.3456, "12.35"),
        (1234567.0, "1,234,567"),
        (0.00012346, "0.0001235"),
        (1e7, "1e7"),
        (1.2346e-9, "1.235e-9"),
        (-6.0221e23, "-6.022e23"),
        (1e300, "1e300"),
        (9.99999, "10"),
        (100.0, "100"),
        (float("inf"), "inf"),
    ],
)
def test_numbers(value, written):
    assert number(value) == written


@pytest.mark.parametrize("value", [1e-300, 3.14159e-5, 0.1 + 0.2, 99999.5, 1 / 3, 123456.789, 9.9999e6])
@pytest.mark.parametrize("digits", [2, 4, 6])
def test_numbers_keep_their_digits(value, digits):
    assert float(number(value, digits).replace(",", "")) == pytest.approx(value, rel=0.51 * 10 ** (1 - digits))


def test_amounts_and_shares_do_not_break():
    assert amount(12.0, "euro") == "12\N{NO-BREAK SPACE}euro"
    assert amount(12.0, "") == "12"
    assert share(0.256) == "26\N{NO-BREAK SPACE}%"


def test_values_of_parameters():
    assert [text(value) for value in (0.1, 3, True, None, "a b")] == ["0.1", "3", "True", "None", "a b"]
    assert text("a\nb\tc\u202e\x1b[0m") == r"a\nb\tc\u202e\x1b[0m"
    assert text("\ud800") == r"\ud800"
    assert text("x" * 50, 10) == "x" * 9 + "…"


@pytest.mark.parametrize("hostile", HOSTILE)
def test_labels_hold_nothing_to_interpret(hostile):
    written = label(hostile, 1000)
    assert not set(written) & set("<>$\x00\x1b\u202e")
    assert written.isprintable()
    entities = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&#36;": "$"}
    for entity, sign in entities.items():
        written = written.replace(entity, sign) if sign != "&" else written
    assert written.replace("&amp;", "&") == text(hostile)
    assert text(text(hostile)) == text(hostile)  # saying it twice changes nothing


def test_labels_that_were_cut_stay_apart():
    names = ["x" * 40 + "a", "x" * 40 + "b", "y"]
    assert labels(names, 10) == ["xxxx…xxxxa", "xxxx…xxxxb", "y"]  # by how they end
    alike = ["a" * 20 + middle + "z" * 20 for middle in "pq"]
    assert labels(alike, 10) == ["aaaa…zzzzz (1)", "aaaa…zzzzz (2)"]
