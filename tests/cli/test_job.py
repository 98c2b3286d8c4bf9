"""Job files: what is read, and how mistakes are named."""

import pytest
from cli_runs import write_job

from pbgi.cli.errors import JobError
from pbgi.cli.job import read_job
from pbgi.cli.toml_file import TomlFile
from pbgi.parameter import Categorical, Float, Integer
from pbgi.policy import PBGI, LogEIPC
from pbgi.trials.steps import Steps

FULL = """
name = "my study"
command = ["python", "train.py", "--lr={lr}", "{act}", "{pbgi.trial}", "{{}}"]
direction = "maximize"
objective = "accuracy"
cost = "dollars"
result_file = "result.json"
price_per_second = 0.001
budget = 60
overrun = "finish"
trials = 100
parallel = 4
timeout = 3600
retries = 2
max_failures = 7
storage = "sqlite:///elsewhere.db"
folder = "."
seed = 3
n_startup_trials = 6
policy = { kind = "PBGI", cost_scale = 0.01 }

[environment]
MODE = "fast"

[parameters]
lr = { low = 1e-5, high = 1e-1, log = true }
layers = { low = 1, high = 8 }
units = { low = 16, high = 256, step = 16 }
dropout = { low = 0.0, high = 0.5, step = 0.1 }
act = ["relu", "tanh"]
mixed = { choices = ["a", 2, 2.5, true] }
whole = { low = 0, high = 1, type = "float" }
epochs = 10
"odd name\\n$(x)" = { low = 0.0, high = 1.0 }
"""


def test_every_key_is_read(tmp_path):
    job = read_job(write_job(tmp_path, FULL))
    assert job.name == "my study"
    assert job.command[2:] == ("--lr={lr}", "{act}", "{pbgi.trial}", "{{}}")
    assert (job.direction, job.objective, job.cost, job.result_file) == (
        "maximize",
        "accuracy",
        "dollars",
        "result.json",
    )
    assert (job.price_per_second, job.budget, job.trials, job.parallel, job.timeout) == (0.001, 60.0, 100, 4, 3600.0)
    assert (job.overrun, job.ends_overrun) == ("finish", False)
    assert (job.retries, job.max_failures, job.seed, job.n_startup_trials) == (2, 7, 3, 6)
    assert job.storage == "sqlite:///elsewhere.db"
    assert job.folder == tmp_path
    assert job.environment == {"MODE": "fast"}
    assert job.policy == PBGI(cost_scale=0.01)
    assert dict(job.space.parameters) == {
        "lr": Float(1e-5, 1e-1, log=True),
        "layers": Integer(1, 8),
        "units": Integer(16, 256, step=16),
        "dropout": Float(0.0, 0.5, step=0.1),
        "act": Categorical(["relu", "tanh"]),
        "mixed": Categorical(["a", 2, 2.5, True]),
        "whole": Float(0, 1),
        "epochs": 10,
        "odd name\n$(x)": Float(0, 1),
    }
    assert job.database == tmp_path / "job.db"


def test_how_long_trials_are(tmp_path):
    for head, steps in (
        ("", None),
        ("steps = 27\n", Steps(27)),
        ("steps = [3, 9, 27]\nresumable = true\n", Steps(27, (3, 9, 27), resumable=True)),
        ("steps = 27\nresumable = false\n", Steps(27)),
        ("resumable = false\n", None),
    ):
        assert read_job(write_job(tmp_path, head + GOOD)).steps == steps
    command = 'command = ["a", "{pbgi.step}", "{pbgi.checkpoint}"]\nsteps = 3\n'
    assert read_job(write_job(tmp_path, command + "[parameters]\nx = [1, 2]\n")).steps == Steps(3)


def test_defaults(tmp_path):
    job = read_job(write_job(tmp_path, 'policy = "LogEIPC"\n[parameters]\nx = [1, 2]\n', "tune me.toml"))
    assert (job.name, job.direction, job.objective, job.cost, job.parallel) == ("tune me", "minimize", "value", None, 1)
    assert job.policy == LogEIPC()


@pytest.mark.parametrize(
    ("head", "ends"),
    [
        ("", True),
        ('overrun = "stop"\n', True),
        ('overrun = "finish"\n', False),
        ("price_per_second = 2.0\n", True),
        ('cost = "dollars"\n', False),
        ('cost = "dollars"\nprice_per_second = 2.0\n', False),
    ],
)
def test_a_budget_holds_where_seconds_are_the_cost(tmp_path, head, ends):
    assert read_job(write_job(tmp_path, head + GOOD)).ends_overrun is ends


GOOD = 'command = ["true"]\n[parameters]\nx = { low = 0.0, high = 1.0 }\n'


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("budget = \n", 1, "is not TOML"),
        ('command = ["true"]\n', None, "parameters: must be given"),
        ("budget = -1\n" + GOOD, 1, "budget: this must be a positive, finite number; got -1"),
        ("# a comment\n\nbudgt = 1\n" + GOOD, 3, "budgt: no such key; there are parameters, command"),
        ('command = "python train.py"\n[parameters]\nx = [1, 2]\n', 1, "command: must be a list of texts"),
        ('command = ["a", "{y}"]\n[parameters]\nx = [1, 2]\n', 1, "command[1]: {y} must be a parameter"),
        ('command = ["a", "{x"]\n[parameters]\nx = [1, 2]\n', 1, "command[1]: braces must come in pairs"),
        ("[parameters]\nx = { low = 1.0, high = 0.0 }\n", 2, "parameters.x: low must not exceed high"),
        ("[parameters.x]\nlow = 0.0\nhgh = 1.0\n", 1, "parameters.x: has no key 'hgh'"),
        ("[parameters]\na = 1\n'b c' = { low = 0.0 }\n", 3, 'parameters."b c": needs high'),
        ("[parameters]\nx = []\n", 2, "parameters.x: choices must not be empty"),
        ("[parameters]\nx = [1, 1.0]\n", 2, "parameters.x: choices must differ"),
        ("[parameters]\nx = { low = 3, high = 9, log = true, step = 2 }\n", 2, "log and step do not go together"),
        ("[parameters]\nx = { low = 9007199254740992, high = 9007199254740993 }\n", 2, "up to 2**53"),
        ("[parameters]\nx = 2026-11-15\n", 2, "parameters.x: a fixed value must be a str"),
        ('[parameters]\nx = ["a\\u0000b", "c"]\n', 2, "must not hold a NUL"),
        ('[parameters]\n"pbgi.trial" = [1, 2]\n', 2, "not begin with 'pbgi.'"),
        ('policy = "PGBI"\n' + GOOD, 1, "policy: kind must be one of EI, EIPC"),
        ('policy = { kind = "PBGI" }\n' + GOOD, 1, "policy: PBGI needs cost_scale; got {'kind': 'PBGI'}"),
        ('policy = "PBGI"\n' + GOOD, 1, "policy: PBGI needs cost_scale; got 'PBGI'"),
        ('result_file = "../x"\n' + GOOD, 1, "result_file: must be a name inside the trial's folder"),
        ('folder = "nowhere"\n' + GOOD, 1, "folder: must be a folder that exists"),
        ("retries = 1.5\n" + GOOD, 1, "retries: must be a whole number"),
        ("seed = -1\n" + GOOD, 1, "seed: must be a whole number"),
        ('overrun = "kill"\n' + GOOD, 1, "overrun: must be one of 'stop', 'finish'; got 'kill'"),
        (
            'cost = "dollars"\noverrun = "stop"\n' + GOOD,
            2,
            'overrun: must be "finish" where the program reports its own cost',
        ),
        ('direction = "up"\n' + GOOD, 1, "direction: must be one of 'minimize', 'maximize'; got 'up'"),
        ("steps = 0\n" + GOOD, 1, "steps: last must be"),
        ("steps = 2.5\n" + GOOD, 1, "steps: must be how many steps a trial has, or a list of steps; got 2.5"),
        ("steps = true\n" + GOOD, 1, "steps: must be how many steps a trial has"),
        ("steps = []\n" + GOOD, 1, "steps: must be how many steps a trial has"),
        ('steps = [1, "2"]\n' + GOOD, 1, "steps: must be how many steps a trial has"),
        ("steps = [3, 9, 9]\n" + GOOD, 1, "steps: stages must rise and not exceed last=9; got (3, 9, 9)"),
        ("steps = [0, 9]\n" + GOOD, 1, "steps: stages must be"),
        ("steps = 2147483648\n" + GOOD, 1, "steps: a trial may have up to 2**31 - 1 steps; got 2147483648"),
        ('objective = "step"\nsteps = 9\n' + GOOD, 2, "steps: 'step' is the key of the value or the cost already"),
        ('cost = "step"\nsteps = 9\n' + GOOD, 2, "steps: 'step' is the key of the value or the cost already"),
        ("resumable = true\n" + GOOD, 1, "resumable: must go with steps = n"),
        ("steps = 9\nresumable = 1\n" + GOOD, 2, "resumable: must be true or false; got 1"),
        (
            "\nsteps = 9\n" + GOOD + "[constraints]\nms = { at_most = 1 }\n",
            2,
            "steps: trials that may stop early know no conditions on outcomes yet",
        ),
        ('command = ["a", "{pbgi.step}"]\n[parameters]\nx = [1, 2]\n', 1, "{pbgi.step} must be a parameter"),
    ],
)
def test_mistakes_are_named(tmp_path, text, line, says):
    path = write_job(tmp_path, text)
    with pytest.raises(JobError) as caught:
        read_job(path)
    message = str(caught.value)
    if line is not None and "is not TOML" not in says:
        assert message.startswith(f"{path}:{line}: ")
    if line is not None:
        assert f"line {line}" in message or f":{line}: " in message
    assert says in message


def test_missing_file(tmp_path):
    with pytest.raises(JobError, match=r"absent\.toml: cannot be read: No such file"):
        read_job(tmp_path / "absent.toml")


def test_not_text(tmp_path):
    (tmp_path / "job.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(JobError, match="must be UTF-8"):
        read_job(tmp_path / "job.toml")


def test_lines_of_keys(tmp_path):
    text = 'a = 1\n"b = c" = 2\n[t]\nd.e = 3\n[[box]]\ncost = 1\n[[box]]\n[box.reward]\nx = 1\n[["x"]]\n'
    file = TomlFile.read(write_job(tmp_path, text))
    assert [file.line(keys) for keys in (("a",), ("b = c",), ("t", "d", "e"), ("box", 0, "cost"))] == [1, 2, 4, 6]
    assert [file.line(keys) for keys in (("box", 1), ("box", 1, "reward", "x"), ("z",), ())] == [7, 9, None, None]


# Conditions ----------------------------------------------------------------------------------------------------------

CONDITIONAL = """
command = ["train", "{model}", "--depth={depth}", ["-C", "{C}"]]
[parameters]
model = ["svm", "tree"]
C = { low = 0.1, high = 10.0, log = true, when = { model = "svm" } }
depth = { low = 1, high = 9, when = { model = ["tree"] } }
kernel = { choices = ["rbf", "poly"], when = { model = "svm" } }
seed = { value = 7, when = { model = "tree" } }
"""


def test_conditions_are_read(tmp_path):
    job = read_job(write_job(tmp_path, CONDITIONAL))
    assert dict(job.space.parameters) == {
        "model": Categorical(["svm", "tree"]),
        "C": Float(0.1, 10.0, log=True, when={"model": "svm"}),
        "depth": Integer(1, 9, when={"model": "tree"}),
        "kernel": Categorical(["rbf", "poly"], when={"model": "svm"}),
        "seed": Categorical([7], when={"model": "tree"}),
    }
    assert job.command == ("train", "{model}", "--depth={depth}", ("-C", "{C}"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('["-C", "{C}"]', '"-C", "{C}"', r'and -C would stay; write the two as a list: \["-C", "{C}"\]'),
        ('"train"', '"train-{C}"', "a program must be there in every trial"),
        ('["-C", "{C}"]', '["-C", "{D}"]', r"command\[3\]: {D} must be a parameter"),
        ('["-C", "{C}"]', '["-C", 3]', "must be a list of texts"),
        ('model = "svm" } }\ndepth', 'modl = "svm" } }\ndepth', "when of parameter 'C' must name parameters of the"),
        ('{ model = ["tree"] }', '{ model = ["trees"] }', "when of parameter 'depth': 'model' must be one of"),
        ('{ model = ["tree"] }', '"tree"', "when must map names"),
    ],
)
def test_conditions_that_make_no_sense_are_refused(tmp_path, old, new, message):
    assert old in CONDITIONAL
    with pytest.raises(JobError, match=message):
        read_job(write_job(tmp_path, CONDITIONAL.replace(old, new, 1)))


# Costs ----------------------------------------------------------------------------------------------------------------

PRICED = """
command = ["true"]
[parameters]
width = { low = 1, high = 8 }
lr = { low = 0.0, high = 1.0 }
act = ["a", "b"]
"""


def test_a_name_is_a_key_and_anything_else_a_formula(tmp_path):
    for written, cost, formula in (
        ('"dollars"', "dollars", None),
        ('{ key = "gpu-hours" }', "gpu-hours", None),
        ('"2 + 0.1 * width"', None, "2 + 0.1 * width"),
        ('{ formula = "width" }', None, "width"),
    ):
        job = read_job(write_job(tmp_path, f"cost = {written}" + PRICED))
        assert (job.cost, job.formula) == (cost, formula)
        assert job.ends_overrun is False


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ('cost = "2 * depth"', r"1: cost: .*got 'depth'.*cost = \{ key"),
        ('cost = "2 * act"', "1: cost: parameter 'act' must be a number"),
        ('cost = "width - 1"', r"1: cost: a known cost must be a positive, finite number; 'width - 1' is 0 at"),
        ('cost = "1 / lr"', "'1 / lr' is nan at"),
        ('cost = "import os"', "got 'import'"),
        ('cost = { key = "a", formula = "b" }', "must be { key"),
        ("cost = 3", "must be a text"),
        ('overrun = "stop"\ncost = "2 * width"', '1: overrun: must be "finish" where'),
        (
            'price_per_second = 2.0\ncost = "2 * width"',
            "1: price_per_second: must not be given where cost is a formula",
        ),
    ],
)
def test_costs_that_are_none(tmp_path, lines, why):
    with pytest.raises(JobError, match=why):
        read_job(write_job(tmp_path, lines + PRICED))


@pytest.mark.parametrize(
    "written",
    [
        "[{ low = 0.0, high = 1.0 }]",
        '{ low = 0.0, high = 1.0, type = "categorical" }',
        "{ low = 0.0 }",
        "{ high = 1.0 }",
        "{ low = 0.0, high = 1.0, choices = [0.0, 1.0] }",
        "{ choices = { low = 0.0, high = 1.0 } }",
        '{ low = "a", high = "b" }',
        "{ low = [0.0], high = [1.0] }",
        "{ low = true, high = false }",
    ],
)
def test_low_and_high_are_a_range_or_an_error_and_never_choices(tmp_path, written):
    with pytest.raises(JobError, match=r"4: parameters\.x"):
        read_job(write_job(tmp_path, f'command = ["true"]\n\n[parameters]\nx = {written}\n'))
