"""A program that tells its steps, for tests, and what is decided about it.

It waits at the ends of its stages until it was decided that it goes on, so that nothing depends on how long a decision
takes.
"""

import json
import sys

from cli_runs import run, write_job

from pbgi.cli import scripts  # imported now, it has the real `goes_on`, whatever is patched later
from pbgi.cli.choosing import goes_on

assert scripts.goes_on is goes_on

# Eight steps, with decisions after 2 and 4. What a step costs is a power of two, so that sums are exact.
PROGRAM = """
import json, os, sys, time
from pathlib import Path
folder, checkpoint = Path(os.environ["PBGI_FOLDER"]), Path(os.environ["PBGI_CHECKPOINT"])
x, begun = float(sys.argv[1]), int(os.environ["PBGI_STEP"])
price = 0.5 if x < 0.5 else 0.25
def report(step, value=None, cost=None):
    value = (x - 0.25) ** 2 + 2.0 ** -step if value is None else value
    print(json.dumps({"step": step, "value": value, "cost": cost or price * (step - begun)}), flush=True)
def wait(step):
    while not (folder / f"go-{step}").exists():
        time.sleep(0.01)
BEFORE
for step in range(begun + 1, 9):
    BODY
"""
BODY = """(checkpoint / "state").open("a").write(f"{step} ")
    report(step)
    if step in (2, 4):
        wait(step)"""
JOB = """
command = [PYTHON, "-S", "program.py", "{x}"]
cost = "cost"
steps = [2, 4, 8]
seed = 1
[parameters]
x = { low = 0.0, high = 1.0 }
""".replace("PYTHON", json.dumps(sys.executable))


def job_in(folder, head="", *changes, body=BODY, before=""):
    folder.mkdir(exist_ok=True)
    (folder / "program.py").write_text(PROGRAM.replace("BODY", body).replace("BEFORE", before))
    text = head + JOB
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return write_job(folder, text)


def decide(patch, folder, rule=None):
    """Decide by a rule about (number, step) instead of the model, or by the model; the program is told to go on."""

    def look(study, number, used):
        step = max(study.trial(number).intermediate_values)
        found = goes_on(study, number, used) if rule is None else rule((number, step))
        if found:
            (own,) = (folder / "job.trials").glob(f"{number}-*")
            (own / f"go-{step}").touch()
        return found

    patch.setattr("pbgi.cli.choosing.goes_on", look)


def always(_at):
    return True


def never(_at):
    return False


def records(job):
    return json.loads(run("trials", job).stdout)


def price_of(record):
    return 0.5 if record["params"]["x"] < 0.5 else 0.25
