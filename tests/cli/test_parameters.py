"""What a program is given of a point."""

from pbgi.cli.parameters import as_text, filled, names_in


def test_placeholders():
    command = ["--lr={lr}", "{{{lr}}}", "a{b c}d{lr}", "{}"]
    assert [names_in(argument) for argument in command] == [["lr"], ["lr"], ["b c", "lr"], [""]]
    assert filled(command[:3], {"lr": "0.1", "b c": "{lr} $(x)"}) == ["--lr=0.1", "{0.1}", "a{lr} $(x)d0.1"]


def test_values_as_text():
    assert [as_text(v) for v in ("-x\n", 3, 0.1, 1e-07, True, 1 / 3)] == [
        "-x\n",
        "3",
        "0.1",
        "1e-07",
        "true",
        repr(1 / 3),
    ]


def test_an_argument_of_what_is_not_there_is_left_out_and_a_group_with_it():
    command = ("train", "{model}", "--depth={depth}", ("-C", "{C}"), ("-v", "1"), "end")
    assert filled(command, {"model": "svm", "C": "2.5"}) == ["train", "svm", "-C", "2.5", "-v", "1", "end"]
    assert filled(command, {"model": "tree", "depth": "3"}) == ["train", "tree", "--depth=3", "-v", "1", "end"]
