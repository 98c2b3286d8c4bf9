# ruff: noqa: S608 (statements of our own)
"""Databases that are damaged or hostile: one clear error at once, and what can be read is read."""

import json
import shutil
import sqlite3
from contextlib import closing

import pytest
from cli_runs import ECHO, run, write_job
from command_line import said

from pbgi.cli import main
from pbgi.cli.check import SHOWN_PROBLEMS
from pbgi.cli.processes import identity

TRIAL = "WHERE trial_id = 2"  # the second; the first has number 0
RUNNING = "INSERT INTO trial_user_attributes (trial_id, key, value_json) VALUES (4, "
SYSTEM = RUNNING.replace("user", "system")
SET = "UPDATE study_user_attributes SET value_json = json_set(value_json, "
DEEP = "[" * 50_000
VIEW = """CREATE VIEW trial_values AS WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c)
SELECT i AS trial_value_id, 2 AS trial_id, 0 AS objective, 1.0 AS value, 'FINITE' AS value_type FROM c"""
# What a hostile row holds, and a word of the one line that is said of it.
ROWS = [
    (f"UPDATE trial_user_attributes SET value_json = CAST(x'22fffe22' AS TEXT) {TRIAL}", "must be UTF-8"),
    ("UPDATE studies SET study_name = CAST(x'fffe' AS TEXT)", "must be UTF-8"),
    ("UPDATE studies SET study_name = x'fffe'", "names of studies must be texts"),
    ("UPDATE study_user_attributes SET value_json = CAST(x'fffe' AS TEXT)", "must be UTF-8"),
    (f"UPDATE trials SET state = 'NONSENSE' {TRIAL}", "NONSENSE"),
    (f"UPDATE trial_values SET value = 'abc' {TRIAL}", "number"),
    (f"UPDATE trial_values SET value = x'00ff' {TRIAL}", "number"),
    (f"UPDATE trial_values SET value = NULL {TRIAL}", "damaged"),
    (f"UPDATE trial_values SET value_type = 'NAN' {TRIAL}", "NAN"),
    (f"DELETE FROM trial_values {TRIAL}", "must have a number as its value"),
    (f"UPDATE trials SET number = 'x' {TRIAL}", "damaged"),
    (f"UPDATE trials SET number = 0 {TRIAL}", "numbers of trials must be 0, 1, 2"),
    (f"UPDATE trials SET number = 100 {TRIAL}", "numbers of trials must be 0, 1, 2"),
    (f"UPDATE trials SET datetime_start = 'yesterday' {TRIAL}", "yesterday"),
    (f"UPDATE trial_params SET param_value = 'abc' {TRIAL}", "must be a number"),
    (f"UPDATE trial_params SET distribution_json = '{{' {TRIAL}", "JSON"),
    (f"UPDATE trial_params SET distribution_json = '{DEEP}' {TRIAL}", "recursion"),
    (f'UPDATE trial_params SET distribution_json = \'{{"name": "Evil", "attributes": {{}}}}\' {TRIAL}', "Evil"),
    (f"UPDATE trial_user_attributes SET value_json = '{{' {TRIAL}", "JSON"),
    (f"UPDATE trial_user_attributes SET value_json = '{DEEP}' {TRIAL}", "recursion"),
    (f"UPDATE trial_user_attributes SET value_json = NULL {TRIAL}", "damaged"),
    ("UPDATE trial_user_attributes SET value_json = '\"a\"' WHERE key = 'pbgi:seconds'", "a number of seconds"),
    ("UPDATE trial_user_attributes SET value_json = '\"/../../evil\"' WHERE key = 'pbgi:token'", "hexadecimal"),
    ("UPDATE trial_user_attributes SET value_json = '[1]' WHERE key = 'pbgi:token'", "hexadecimal"),
    ("UPDATE trial_user_attributes SET value_json = '\"w\"' WHERE key = 'pbgi:worker'", "a process"),
    (RUNNING + "'pbgi:message', '[1]')", "a text"),
    (RUNNING + "'pbgi:overrun', '[1]')", "true or false"),
    (RUNNING + "'pbgi:observed', '-1')", "a cost"),
    (RUNNING + """'pbgi:worker', '{"host": [1], "pid": "x"}')""", "a process"),
    (RUNNING + """'pbgi:command', '{"pid": 1}')""", "a process"),
    (RUNNING + """'pbgi:command', '"x"')""", "a process"),
    (RUNNING + """'pbgi:beat', '{"seconds": "x", "time": 1}')""", "seconds and a time"),
    (RUNNING + """'pbgi:attempts', '"xyz"')""", "a list of seconds and costs"),
    (RUNNING + """'pbgi:attempts', '[{"seconds": 1}]')""", "a list of seconds and costs"),
    (RUNNING + """'pbgi:step_costs', '{"one": 1}')""", "costs by step, which do not shrink"),
    (RUNNING + """'pbgi:step_costs', '{"0": 1}')""", "costs by step, which do not shrink"),
    (RUNNING + """'pbgi:step_costs', '{"1": 0}')""", "costs by step, which do not shrink"),
    (RUNNING + """'pbgi:step_costs', '{"1": 2, "10": 2, "9": 3}')""", "costs by step, which do not shrink"),
    (RUNNING + """'pbgi:checkpoint', '"../evil"')""", "the name of a trial's folder"),
    (SYSTEM + """'pbgi:goes_on', '7')""", "numbers of trials before it"),
    (SYSTEM + """'pbgi:goes_on', '[]')""", "numbers of trials before it"),
    (SYSTEM + """'pbgi:begun_again', '[0]')""", "the number of a trial"),
    (f"UPDATE trial_system_attributes SET value_json = '\"x\"' {TRIAL}", "what was suggested"),
    (f"""UPDATE trial_system_attributes SET value_json = '{{"predicted_cost": "x"}}' {TRIAL}""", "what was suggested"),
    (f"""UPDATE trial_system_attributes SET value_json = '{{"predicted_cost": -5}}' {TRIAL}""", "what was suggested"),
    (f"""UPDATE trial_system_attributes SET value_json = '{{"record": {{"a": "b"}}}}' {TRIAL}""", "what was suggested"),
    (f"""UPDATE trial_system_attributes SET value_json = '{{"params": 7}}' {TRIAL}""", "what was suggested"),
    (f"UPDATE trial_system_attributes SET key = NULL {TRIAL}", "names of what trial 1 holds must be texts; got None"),
    ("UPDATE trial_user_attributes SET key = x'00ff' WHERE key = 'pbgi:seconds'", "must be texts; got b'"),
    ("UPDATE study_user_attributes SET value_json = '{'", "JSON"),
    ("UPDATE study_user_attributes SET value_json = '\"x\"'", "settings of the study"),
    (SET + "'$.budget', 'x')", "budget must be"),
    (SET + "'$.seed', 'x')", "seed must be"),
    (SET + "'$.trials', 'x')", "damaged"),
    (SET + "'$.direction', 'x')", "direction must be"),
    (SET + "'$.space', 7)", "space must be"),
    (SET + """'$.policy', json('{"kind": "Evil"}'))""", "kind of policy must be"),
    ("UPDATE study_directions SET direction = 'SIDEWAYS'", "SIDEWAYS"),
    ("DROP TABLE trial_params", "must have the parameters suggested for it"),
    ("ALTER TABLE trials DROP COLUMN datetime_complete", "no such column"),
    (f"DROP TABLE trial_values; {VIEW}", "a view or trigger 'trial_values'"),
    ("CREATE TRIGGER t AFTER INSERT ON trials BEGIN DELETE FROM trials; END", "a view or trigger 't'"),
    ("UPDATE alembic_version SET version_num = 'v9.9.9.z'", "version"),
]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A job of which three trials are told and one is running."""
    folder = tmp_path_factory.mktemp("sound")
    job = write_job(folder, "trials = 3\n" + ECHO)
    run("tune", job)
    write_job(folder, "trials = 8\n" + ECHO)
    run("ask", job)
    return folder


@pytest.fixture
def job(sound, tmp_path):
    return shutil.copytree(sound, tmp_path / "copy") / "job.toml"


def damage(database, script):
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(script)


def no_waiting(*_):
    raise AssertionError("this does not pass by waiting")


@pytest.mark.parametrize(("script", "says"), ROWS, ids=[f"{i}-{says}" for i, (_, says) in enumerate(ROWS)])
def test_rows_of_the_wrong_type(job, capfd, monkeypatch, script, says):
    database = job.with_suffix(".db")
    damage(database, script)
    monkeypatch.setattr("pbgi.cli.storage.time.sleep", no_waiting)
    for command in (["status", database], ["trials", database], ["ask", job], ["tune", job, "--quiet"]):
        err = said(capfd, *command, status=3)
        assert says in err
        assert err.count("\n") == 1, err
    before = database.read_bytes()
    found = said(capfd, "check", database, "--output", job.with_name("out.jsonl"), status=3)
    assert not found["sound"]
    assert found["problems"]
    assert database.read_bytes() == before
    kept = [json.loads(line) for line in job.with_name("out.jsonl").read_text().splitlines()]
    assert len(kept) == 4  # whatever a row holds, the others are read
    assert sum(trial["cost"] is not None for trial in kept) >= 2


def test_a_sound_file(job, capfd):
    trials = said(capfd, "trials", job)
    found = said(capfd, "check", job, "-o", job.with_name("out.jsonl"))
    assert (found["sound"], found["problems"]) == (True, [])
    assert found["studies"] == [{"study": "job", "trials": {"complete": 3, "running": 1}}]
    kept = [json.loads(line) for line in job.with_name("out.jsonl").read_text().splitlines()]
    for trial, record in zip(trials, kept, strict=True):
        same = ("trial", "state", "params", "value", "cost", "seconds", "message")
        assert {key: trial[key] for key in same} == {key: record[key] for key in same}
        assert record["study"] == "job"


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.9, 0.95])
def test_a_file_that_was_cut_off(job, capfd, monkeypatch, share):
    database = job.with_suffix(".db")
    whole = database.read_bytes()
    database.write_bytes(whole[: int(share * len(whole))])
    monkeypatch.setattr("pbgi.cli.storage.time.sleep", no_waiting)
    for command in (["status", database], ["tune", job, "--quiet"]):
        err = said(capfd, *command, status=3)
        assert "malformed" in err
        assert "`pbgi check` says what can be read" in err
        assert err.count("\n") == 1
    found = said(capfd, "check", database, status=3)
    assert 0 < len(found["problems"]) <= SHOWN_PROBLEMS + 1
    assert database.read_bytes() == whole[: int(share * len(whole))]


def test_what_is_before_the_cut_is_exported(tmp_path, capfd):
    """The first trials lie in the first pages of their tables, and are read from what is left."""
    job = write_job(tmp_path, "trials = 40\nparallel = 2\n" + ECHO + "\n".join(f"p{i} = [1, 2]" for i in range(9)))
    run("tune", job, "--quiet")
    trials = said(capfd, "trials", job)
    database = tmp_path / "job.db"
    whole = database.read_bytes()
    database.write_bytes(whole[: -6 * 4096])
    said(capfd, "check", database, "--output", tmp_path / "out.jsonl", status=3)
    kept = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    same = ("trial", "params", "value", "cost")
    exact = [record for record in kept if all(record[key] == trials[record["trial"]][key] for key in same)]
    assert len(exact) >= 5


def test_noise_in_the_middle(job, capfd):
    database = job.with_suffix(".db")
    raw = bytearray(database.read_bytes())
    page = 4096
    for number in range(10, len(raw) // page, 3):
        raw[number * page : (number + 1) * page] = bytes(range(256)) * (page // 256)
    database.write_bytes(raw)
    assert main(["status", str(database)]) == 3
    assert "Traceback" not in capfd.readouterr().err
    assert said(capfd, "check", database, status=3)["problems"]


def test_what_check_does_not_read(tmp_path, capfd):
    (tmp_path / "notes.db").write_text("my notes")
    assert "must be an SQLite database" in said(capfd, "check", tmp_path / "notes.db", status=3)
    assert "there is no such file" in said(capfd, "check", tmp_path / "none.db", status=3)
    assert "check reads SQLite files" in said(capfd, "check", "postgresql://me:s3cr3t@host/db", status=2)


@pytest.mark.parametrize(
    "outcome",
    [
        "7",
        "{}",
        '{"value": "x", "cost": 1, "seconds": 1}',
        '{"value": 1, "cost": -1, "seconds": 1}',
        "[" * 60000,
        '{"value": 1, "cost": 1, "seconds": "x"}',
        '{"value": 1, "cost": 1, "seconds": 1, "message": [1]}',
    ],
)
def test_an_outcome_that_is_none(job, capfd, outcome):
    """A dead worker's trial has left a file that is not ours: the trial fails, and is charged what is known."""
    database, dead = job.with_suffix(".db"), {**identity(1), "start": "another boot/1"}
    damage(database, RUNNING + f"'pbgi:worker', '{json.dumps(dead)}')")
    damage(database, RUNNING + f"'pbgi:command', '{json.dumps(dead | {'time': 1.0})}')")
    with closing(sqlite3.connect(database)) as connection:
        query = "SELECT value_json FROM trial_user_attributes WHERE trial_id = 4 AND key = 'pbgi:token'"
        token = json.loads(connection.execute(query).fetchone()[0])
    folder = job.with_suffix(".trials") / f"3-{token}"
    folder.mkdir()
    (folder / "outcome.json").write_text(f'{{"token": "{token}", "outcome": {outcome}}}')
    assert main(["tune", str(job), "--quiet"]) == 0
    assert "Traceback" not in capfd.readouterr().err
    assert said(capfd, "trials", job)[3]["state"] == "failed"
