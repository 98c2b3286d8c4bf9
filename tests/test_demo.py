"""The demo tunes a network within its budget, tells what it spent and lost, draws it, and goes on when run again."""

import importlib
import math
import re
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

import pbgi

pytestmark = pytest.mark.skipif(
    find_spec("sklearn") is None or find_spec("matplotlib") is None, reason="needs pbgi[demo]"
)
EXAMPLES = Path(__file__).parents[1] / "examples"
STUDIES = tuple(f"{name}, seed 3, pbgi {pbgi.__version__}" for name in ("pbgi", "random search"))
BUDGET = 2.0
SMALL = {"batch_size": 256, "width": 16, "layers": 1, "learning_rate": 1e-2, "alpha": 1e-4}
MONSTER = {"batch_size": 4, "width": 512, "layers": 3, "learning_rate": 1e-3, "alpha": 1e-4}


def command(out, *arguments):
    return [str(part) for part in (EXAMPLES / "demo.py", "--out", out, "--seed", 3, *arguments)]


def run(out, *arguments):
    """As a user runs it."""
    line = [sys.executable, "-W", "error", *command(out, *arguments)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done


def trials_of(out, study):
    return optuna.load_study(study_name=study, storage=f"sqlite:///{out}/demo.db").trials


def spent(trials):
    return sum(trial.user_attrs.get("cost", 0.0) for trial in trials)


@pytest.fixture
def module(monkeypatch):
    """Imports a file of the demo."""
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module


@pytest.fixture
def run_here(module, monkeypatch, capsys):
    """Runs the demo in this process, without a picture; `network`, by default a quick one, stands for all training."""
    demo, verbosity = module("demo"), optuna.logging.get_verbosity()

    def call(out, *arguments, network=quick_loss):
        monkeypatch.setattr(demo.Digits, "cross_validated_loss", network)
        monkeypatch.setattr(demo.Digits, "on_held_out", lambda _digits, _params: (0.1, 2.0))
        monkeypatch.setattr(demo, "draw", lambda *_: None)
        monkeypatch.setattr(sys, "argv", command(out, *arguments))
        demo.main()
        return capsys.readouterr()

    yield call
    optuna.logging.set_verbosity(verbosity)


def quick_loss(_digits, params, seconds):
    """A formula that takes a twentieth of a second, or what is left of the budget."""
    begun = time.process_time()
    while time.process_time() - begun < 0.05:
        if time.process_time() - begun > seconds:
            raise optuna.TrialPruned
    return 0.1 + abs(math.log10(params["learning_rate"]) + 2.5)


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A demo of two seconds each."""
    out = tmp_path_factory.mktemp("demo")
    return out, run(out, "--budget", BUDGET), {study: trials_of(out, study) for study in STUDIES}


def test_both_spend_the_same_budget(first):
    _, _, trials = first
    for study in STUDIES:
        assert spent(trials[study]) > BUDGET / 2.0
        done = [trial for trial in trials[study] if trial.state == TrialState.COMPLETE]
        assert spent(done) <= BUDGET  # what has a loss ended within the budget


def test_a_trial_that_uses_up_the_budget_is_charged_and_has_no_loss(first):
    _, done, trials = first
    random = trials[STUDIES[1]]  # goes on until its budget is spent
    assert [trial.state for trial in random if trial.state != TrialState.COMPLETE] == [TrialState.PRUNED]
    assert spent(random) > BUDGET
    assert random[-1].value is None
    of_random = done.stdout[done.stdout.index("\nrandom search:") :]  # the other may have ended one too
    told = re.search(r"without a loss: +1 in +([\d.]+) s\n    ended with the budget after ([\d.]+) s", of_random)
    assert [float(seconds) for seconds in told.groups()] == pytest.approx([spent(random[-1:])] * 2, abs=0.051)


def test_a_monster_is_ended_long_before_it_is_through(module):
    """It takes a minute or two; 64 of its steps, after which it looks at the clock, half a second."""
    demo, begun = module("demo"), time.process_time()
    with demo.one_quiet_thread(), pytest.raises(optuna.TrialPruned):
        demo.Digits.load().cross_validated_loss(MONSTER, 0.5)
    assert 0.5 < time.process_time() - begun < 20.0


def test_training_in_pieces_learns(module):
    """A network that knows nothing has the logarithm of ten; the small one gets far below, and the same every time."""
    demo = module("demo")
    with demo.one_quiet_thread():
        losses = [demo.Digits.load().cross_validated_loss(SMALL, math.inf) for _ in range(2)]
    assert losses[0] == losses[1] < math.log(10.0) / 4.0


def test_it_tells_the_result_and_what_was_spent_on_what(first):
    _, done, trials = first
    parts = re.split(r"^(?=pbgi:|random search:)", done.stdout, flags=re.MULTILINE)[1:]
    assert len(parts) == 2
    for part, study in zip(parts, STUDIES, strict=True):
        n_trials, seconds = re.search(r"(\d+) trials in ([\d.]+) s of training", part).groups()
        assert float(seconds) == pytest.approx(spent(trials[study]), abs=0.06)
        groups = re.findall(r"^  trials .*: +(\d+) in +([\d.]+) s", part, re.MULTILINE)
        assert len(groups) == 4
        assert sum(int(n) for n, _ in groups) == int(n_trials)
        assert sum(float(s) for _, s in groups) == pytest.approx(float(seconds), abs=0.3)  # each is rounded to a tenth
        assert "stopped: " in part


def test_the_best_is_the_best_that_ended_within_the_budget(first):
    _, done, trials = first
    parts = re.split(r"^(?=pbgi:|random search:)", done.stdout, flags=re.MULTILINE)[1:]
    for part, study in zip(parts, STUDIES, strict=True):
        losses = [trial.value for trial in trials[study] if trial.state == TrialState.COMPLETE]
        if losses:
            told = re.search(r"best: log loss ([\d.]+) in cross-validation", part)
            assert float(told[1]) == pytest.approx(min(losses), abs=1e-4)
            assert 0.0 <= float(re.search(r"never saw: log loss [\d.]+, ([\d.]+) % misread", part)[1]) <= 100.0
        else:  # on a slow machine
            assert "no trial ended within the budget" in part


def test_progress_goes_to_stderr_and_the_picture_to_the_folder(first):
    out, done, trials = first
    lines = re.findall(r"^(pbgi|random search) +[\d.]+ s spent, +[\d.]+ s left \| best", done.stderr, re.MULTILINE)
    assert len(lines) >= sum(trial.state == TrialState.COMPLETE for study in STUDIES for trial in trials[study])
    assert (out / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_of_nothing(tmp_path, module):
    """Searches that lost all their seconds on one trial each, or did not begin, are drawn too."""
    lost = finished(module, (None, 2.0))
    for number, trials in enumerate([{"pbgi": lost, "random search": lost}, {"pbgi": [], "random search": lost}]):
        path = tmp_path / f"{number}.png"
        module("demo_picture").draw(trials, 2.0, 0, None, path)
        assert path.read_bytes().startswith(b"\x89PNG")


def test_run_again_it_goes_on(tmp_path, run_here):
    """With the same budget there is nothing to do; with a larger one new points are added; anew it forgets them all."""
    run_here(tmp_path, "--budget", 0.3)
    before = {study: trials_of(tmp_path, study) for study in STUDIES}
    assert "is over" in run_here(tmp_path, "--budget", 0.3).err
    assert [len(trials_of(tmp_path, study)) for study in STUDIES] == [len(before[study]) for study in STUDIES]
    run_here(tmp_path, "--budget", 0.6)
    for study in STUDIES:
        after = trials_of(tmp_path, study)
        assert [trial.params for trial in after[: len(before[study])]] == [trial.params for trial in before[study]]
        points = [tuple(trial.params.values()) for trial in after if trial.state == TrialState.COMPLETE]
        assert len(set(points)) == len(points) > len(before[study])
    assert "is over" not in run_here(tmp_path, "--budget", 0.3, "--anew").err
    assert spent(trials_of(tmp_path, STUDIES[1])) < 0.5


def test_interrupted_it_goes_on(tmp_path, run_here):
    """Ctrl-C ends the trial, which is charged; nothing else is lost."""
    calls = []

    def interrupted(digits, params, seconds):
        calls.append(quick_loss(digits, params, seconds))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return calls[-1]

    with pytest.raises(SystemExit, match="run it again to go on"):
        run_here(tmp_path, "--budget", 0.5, network=interrupted)
    before = [trial for study in STUDIES for trial in trials_of(tmp_path, study)]
    assert sorted(trial.state.name for trial in before) == ["COMPLETE", "COMPLETE", "COMPLETE", "FAIL"]
    assert all(trial.user_attrs["cost"] > 0.049 for trial in before)
    told = run_here(tmp_path, "--budget", 0.5).out
    assert len(re.findall(r"^    failed after 0\.\d s:", told, re.MULTILINE)) == 1
    after = [trial for study in STUDIES for trial in trials_of(tmp_path, study)]
    assert len(after) > len(before)
    assert {trial.value for trial in before} - {None} <= {trial.value for trial in after}


def test_weights_that_overflow_are_a_failed_trial(tmp_path, run_here):
    """It is charged and has no loss, and the race goes on."""

    def overflowing(digits, params, seconds):
        loss = quick_loss(digits, params, seconds)
        if params["learning_rate"] > 0.03:
            raise ValueError("Solver produced non-finite parameter weights.")
        return loss

    run_here(tmp_path, "--budget", 0.6, network=overflowing)
    random = trials_of(tmp_path, STUDIES[1])
    high = [trial for trial in random[:-1] if trial.params["learning_rate"] > 0.03]
    assert high
    assert all(trial.state == TrialState.FAIL and trial.user_attrs["cost"] > 0.049 for trial in high)
    assert all(trial.state == TrialState.COMPLETE for trial in random[:-1] if trial not in high)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("--budget", 0), "--budget must be positive"),
        (("--budget", "inf"), "--budget must be positive"),
        (("--races", 0), "--races must be at least 1"),
    ],
)
def test_nothing_to_do_is_refused(tmp_path, run_here, capsys, arguments, rule):
    with pytest.raises(SystemExit, match="2"):
        run_here(tmp_path, *arguments)
    assert rule in capsys.readouterr().err
    assert not (tmp_path / "demo.db").exists()


# Several races -------------------------------------------------------------------------------------------------------


def test_races_are_a_table_and_a_file_and_go_on(tmp_path, module, run_here):
    """Two races, seeds 3 and 4; run again they are only told again, as they are in the file."""
    told = run_here(tmp_path, "--budget", 0.3, "--races", 2).out
    races = module("demo_races").Races.load(tmp_path / "demo_races.json")
    assert (races.version, races.budget, [race.seed for race in races.races]) == (pbgi.__version__, 0.3, [3, 4])
    for name, study in zip(("pbgi", "random"), STUDIES, strict=True):
        assert getattr(races.races[0], name).spent == pytest.approx(spent(trials_of(tmp_path, study)))
    assert races.table() in told
    assert run_here(tmp_path, "--budget", 0.3, "--races", 2).out == told


def finished(module, *trials):
    """Trials by (loss, cost)."""
    make, spent, made = module("demo_races").Finished, 0.0, []
    for loss, cost in trials:
        spent += cost
        made.append(make({}, loss, cost, spent, "complete" if loss else "pruned"))
    return made


def test_a_course_by_hand(module):
    course = module("demo_races").Course.of(finished(module, (2.0, 1.0), (3.0, 4.0), (0.5, 1.0), (None, 2.5)))
    assert course.steps == [(1.0, 2.0), (6.0, 0.5)]
    assert (course.n_trials, course.spent, course.lost, course.loss) == (4, 8.5, 2.5, 0.5)
    assert [course.loss_after(seconds) for seconds in (0.9, 1.0, 5.9, 6.0, 8.5)] == [math.inf, 2.0, 2.0, 0.5, 0.5]
    assert [course.seconds_until(loss) for loss in (2.5, 2.0, 1.0, 0.5, 0.4)] == [1.0, 1.0, 6.0, 6.0, math.inf]


def test_a_table_by_hand(module):
    """Of a budget of 10 s: at 20 % where random search ended, never there, and against one that found nothing."""
    races = module("demo_races")
    good, bad = finished(module, (0.4, 2.0), (0.2, 7.0)), finished(module, (0.4, 3.0), (None, 8.5))
    worse, nothing = finished(module, (0.5, 1.0)), finished(module, (None, 10.25))
    pairs = [(good, bad), (worse, bad), (good, nothing)]
    told = [
        races.Race(seed, races.Course.of(ours), races.Course.of(theirs)) for seed, (ours, theirs) in enumerate(pairs)
    ]
    *rows, _, outcome = races.Races("9.9", 10.0, told).table().splitlines()[2:]
    cells = [[cell.split() for cell in row.strip("|").split("|")] for row in rows]
    assert cells == [
        [["0"], ["0.2000"], ["0.4000"], ["20", "%"], ["2", "2"], ["0.00", "1.50"], ["0.0", "8.5"]],
        [["1"], ["0.5000"], ["0.4000"], ["never"], ["1", "2"], ["0.00", "1.50"], ["0.0", "8.5"]],
        [["2"], ["0.2000"], ["none"], ["20", "%"], ["2", "1"], ["0.00", "0.25"], ["0.0", "10.2"]],
    ]
    assert "pbgi 9.9 ended ahead in 2 of 3 races of 10 s" in outcome
    assert outcome.endswith("median: 20 %")


def test_the_races_of_the_picture_are_complete(module):
    """The committed file has races of the default budget, in which neither side was ended early by anything else."""
    races = module("demo_races").Races.load(EXAMPLES / "demo_races.json")
    assert races.budget == 60.0
    assert [race.seed for race in races.races] == list(range(len(races.races)))
    for race in races.races:
        assert race.random.spent > 60.0  # until its budget was spent
        for course in race.courses().values():
            losses = [loss for _, loss in course.steps]
            assert losses == sorted(losses, reverse=True)
            assert course.steps[-1][0] <= 60.0
