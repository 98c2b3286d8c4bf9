"""`pbgi dashboard`: what a browser sees, who may ask, what is told when something is wrong, and how it ends."""

import hashlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import optuna
import psutil
import pytest
from browser import chromium as chromium
from browser import new_tab as new_tab
from cli_runs import run, wait_for, write_job

from pbgi.cli import dashboard, main
from pbgi.cli.plot_process import PLOTS, TROUBLE, Watch
from pbgi.cli.storage import Storage, url_of_file
from pbgi.cli.web_server import WebServer
from pbgi.errors import InvalidInputError

pytest.importorskip("optuna_dashboard", reason='needs optuna-dashboard: pip install "pbgi[dashboard]"')
go = pytest.importorskip("plotly.graph_objects")

HOSTILE = "<img src=x onerror='alert(1)'>"
JOB = f"""
name = "{HOSTILE}"
command = ["true"]
cost = "cost"
seed = 1
[parameters]
"{HOSTILE}" = {{ low = 0.0, high = 1.0 }}
y = {{ low = 0.5, high = 1.5 }}
"""
# Plots that are quick to make and say how many trials they know, instead of the real ones. A sitecustomize is imported
# by every Python that finds it. BoTorch, which optuna-dashboard imports where it can, would only make the tests slow.
NO_BOTORCH = """
import sys, types
sys.modules["botorch"] = None
"""
STAND_IN = (
    NO_BOTORCH
    + """
report = types.ModuleType("pbgi.report")
def figures(study, *, unit):
    import plotly.graph_objects as go
    values = [trial.value for trial in study.get_trials() if trial.value is not None]
    titles = [f"plot {number} of {len(values)} values, {unit}" for number in range(12)]
    return {title: go.Figure(go.Scatter(y=values), layout={"title": {"text": title}}) for title in titles}
report.figures = figures
sys.modules["pbgi.report"] = report
"""
)
ENDLESS = STAND_IN.replace("    import plotly", "    while True: pass\n    import plotly")
# A failure that is over as soon as a file is there.
FAILING = STAND_IN.replace(
    "    import plotly", "    assert __import__('os').path.exists(MENDED), 'no file'\n    import plotly"
)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A job of which five trials were told, and one is running."""
    folder = tmp_path_factory.mktemp("told")
    job = write_job(folder, JOB)
    assert main(["ask", str(job)]) == 0
    for number, value in enumerate((3.0, 2.0, 4.0, 1.0, 5.0)):
        tell(job, number, value)
    return folder


@pytest.fixture
def job(told, tmp_path):
    """The same, for one test."""
    return shutil.copytree(told, tmp_path / "job") / "job.toml"


def tell(job, number, value):
    """End the running trial, and begin another."""
    assert main(["tell", str(job), str(number), "--value", str(value), "--cost", "1.0"]) == 0
    assert main(["ask", str(job)]) == 0


def optuna_study(job):
    return optuna.load_study(study_name=HOSTILE, storage=Storage(database_url(job), create=False).backend)


def database_url(job):
    return url_of_file(job.with_suffix(".db"))


@dataclass
class Running:
    """The command in a process of its own."""

    process: subprocess.Popen
    url: str = ""
    said: str = ""

    def get(self, path, method="GET", **headers):
        return ask(int(self.url.split("/")[2].split(":")[1]), path, method, headers)

    def titles(self):
        plots = json.loads(self.get("/api/studies/1")[1])["plotly_graph_objects"]
        return [json.loads(plot["graph_object"])["layout"]["title"]["text"] for plot in plots]


def ask(port, path, method="GET", headers=()):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, headers=dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers
    finally:
        connection.close()


@contextmanager
def served(job, *arguments, stand_in=STAND_IN, ended_by=signal.SIGINT, status=0):
    """Start it, and end it by a signal."""
    (job.parent / "sitecustomize.py").write_text(stand_in)
    command = [sys.executable, "-m", "pbgi", "dashboard", job, "--port", "0", "--no-browser", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(job.parent)}, **pipes) as process:
        running = Running(process)
        try:
            first = process.stdout.readline()
            assert first, process.stderr.read()
            running.url = json.loads(first)["url"]
            yield running
            process.send_signal(ended_by)
            rest, running.said = process.communicate(timeout=300)
            assert (process.returncode, rest) == (status, ""), running.said
        finally:
            process.kill()


def family(process):
    """A process and its children."""
    parent = psutil.Process(process.pid)
    return [parent, *parent.children(recursive=True)]


# In a browser --------------------------------------------------------------------------------------------------------


def test_plots_follow_the_study(tab, job):
    """They are there in their order, and a trial that another process tells is in them without a reload."""
    with served(job, "--unit", "hours") as running:
        tab.page.goto(running.url)
        tab.page.get_by_text("plot 11 of 5 values, hours").wait_for(timeout=60_000)
        shown = [title for title in tab.page.locator(".gtitle").all_text_contents() if title.startswith("plot ")]
        assert shown == [f"plot {number} of 5 values, hours" for number in range(12)]
        assert HOSTILE in tab.page.inner_text("body")  # names are text, whatever they hold
        assert tab.page.locator("img[src=x]").count() == 0
        width = tab.page.evaluate("document.querySelector('[id^=user-defined-plot]').clientWidth")
        assert width > 0.8 * tab.page.viewport_size["width"]

        run("tell", job, 5, "--value", 0.5, "--cost", 1.0)
        tab.page.get_by_text("plot 11 of 6 values, hours").wait_for(timeout=60_000)
        assert tab.troubles == []
    assert running.said == ""


def test_the_plots_of_a_report(tab, job):
    """The real ones, in the same page. Nothing listens to other machines, and nothing is written to the study."""
    report = pytest.importorskip("pbgi.report")
    expected = list(report.figures(optuna_study(job), unit="USD"))
    assert len(expected) > 3
    database = job.with_suffix(".db")
    before = hashlib.sha256(database.read_bytes()).hexdigest()
    with served(job, "--unit", "USD", stand_in=NO_BOTORCH, ended_by=signal.SIGTERM) as running:
        assert wait_for(running.titles, 60.0) == expected
        tab.page.goto(running.url)
        for title in expected:
            tab.page.get_by_text(title, exact=True).wait_for(timeout=60_000)
        assert "(USD)" in tab.page.inner_text("body")
        assert tab.page.locator("img[src=x]").count() == 0
        assert tab.troubles == []

        processes = family(running.process)
        listening = [c.laddr.ip for p in processes for c in p.net_connections("inet") if c.status == "LISTEN"]
        assert listening == ["127.0.0.1"]
        assert running.url.startswith("http://127.0.0.1:")
        assert not any(database.as_posix() in " ".join(p.cmdline()) for p in processes)  # nor a URL with its password
    assert running.said == ""
    assert hashlib.sha256(database.read_bytes()).hexdigest() == before
    assert not any(process.is_running() for process in processes)


# When something is wrong ---------------------------------------------------------------------------------------------


def test_a_failure_is_told_once_and_tried_again(job):
    mended = job.with_name("mended")
    with served(job, stand_in=FAILING.replace("MENDED", repr(str(mended)))) as running:
        assert (running.get("/api/meta")[0], running.titles()) == (200, [])
        worker = wait_for(lambda: family(running.process)[1:])[0]
        worker.kill()  # another process takes its place
        wait_for(lambda: [p for p in family(running.process)[1:] if p.pid != worker.pid])
        mended.touch()
        wait_for(lambda: len(running.titles()) == 12, 60.0)
    assert running.said.splitlines() == [
        "pbgi: no new plots for now: AssertionError: no file",
        "pbgi: no new plots for now: the process that makes them ended with code -9",
    ]


def test_plots_that_take_for_ever_are_in_nobodys_way(job):
    """And end with the dashboard, also if that is killed."""
    with served(job, stand_in=ENDLESS, ended_by=signal.SIGKILL, status=-signal.SIGKILL) as running:
        status, body, _ = running.get("/api/studies/1")
        assert (status, len(json.loads(body)["trials"])) == (200, 6)
        processes = family(running.process)
        assert len(processes) == 2
    wait_for(lambda: not any(process.is_running() for process in processes))


def test_a_study_is_looked_at_again_and_again(job):
    """Plots are made when trials have ended, not else; after a failure they are made again."""
    asked = []

    def figures(study):
        asked.append(len(study.get_trials()))
        if study.user_attrs.get("broken"):
            raise RuntimeError("no plot today")
        return {"a": go.Figure(layout={"title": {"text": str(len(asked))}})}

    watch = Watch(database_url(job), HOSTILE, figures)
    database = job.with_suffix(".db")
    database.rename(job.with_suffix(".away"))
    assert "no study yet" in watch.news()[TROUBLE]
    job.with_suffix(".away").rename(database)
    assert json.loads(watch.news()[PLOTS][0])["layout"]["title"]["text"] == "1"
    assert (watch.news(), asked) == (None, [6])
    tell(job, 5, 0.5)
    assert (list(watch.news()), asked) == ([PLOTS], [6, 7])
    study = optuna_study(job)
    study.set_user_attr("broken", True)
    tell(job, 6, 0.25)
    assert watch.news() == watch.news() == {TROUBLE: "RuntimeError: no plot today"}
    study.set_user_attr("broken", False)
    assert list(watch.news()) == [PLOTS]
    content = database.read_bytes()
    database.write_bytes(b"?" * len(content))
    assert "DatabaseError" in watch.news()[TROUBLE]
    database.write_bytes(content)
    assert list(watch.news()) == [PLOTS]


def complaint(capfd, *arguments):
    code = main(["dashboard", *map(str, arguments), "--no-browser"])
    out, err = capfd.readouterr()
    assert (code, out) == (2, "")
    return err


def test_ports_and_hosts_that_do_not_work(job, capfd):
    capfd.readouterr()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = complaint(capfd, job, "--port", port)
    assert said == (
        f"pbgi: --port must be free; something listens at 127.0.0.1 port {port} already; "
        "take another one, or --port 0 for any that is free\n"
    )
    assert "got 65536" in complaint(capfd, job, "--port", 65536)
    assert "got 'no such host.invalid'" in complaint(capfd, job, "--host", "no such host.invalid")
    assert "got '192.0.2.1'" in complaint(capfd, job, "--host", "192.0.2.1", "--port", 0)
    assert "there are [" in complaint(capfd, job, "--study-name", "another")


def test_without_the_extra(job, capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna_dashboard", None)
    capfd.readouterr()
    assert 'pip install "pbgi[dashboard]"' in complaint(capfd, job, "--port", 0)


def test_others_need_a_token(job, capfd, monkeypatch):
    """Here nobody is let in: the server only believes so."""
    monkeypatch.setattr(WebServer, "is_loopback", False)
    monkeypatch.setitem(sys.modules, "botorch", None)
    monkeypatch.setattr(dashboard, "FIRST_PLOTS", 0.0)
    capfd.readouterr()
    storage = Storage(database_url(job), create=False)
    addresses = []

    def ready(address):
        addresses.append(address)
        url = urlsplit(address["url"])
        for method, path in (("GET", "/dashboard"), ("GET", "/api/studies"), ("DELETE", "/api/studies/1")):
            for wrong in ({}, {"Cookie": "token="}, {"Cookie": "token=guess"}, {"Cookie": url.query + "x"}):
                answers.append(ask(url.port, path, method, wrong)[:2])
            answers.append(ask(url.port, f"{path}?token=guess", method)[:2])
        status, _, headers = ask(url.port, f"{url.path}?{url.query}")
        assert (status, headers["Location"]) == (303, url.path)
        assert {"HttpOnly", "SameSite=Strict"} <= set(headers["Set-Cookie"].split("; "))
        cookie = headers["Set-Cookie"].split("; ")[0]
        answers.append(ask(url.port, "/api/studies", headers={"Cookie": f"a=b; {cookie}"})[0])
        os.kill(os.getpid(), signal.SIGINT)

    answers = []
    dashboard.serve(storage, HOSTILE, host="127.0.0.1", port=0, unit="", ready=ready)
    assert answers.pop() == 200
    assert len(answers) == 15
    assert all(status == 403 and "with the token" in body for status, body in answers)
    assert optuna_study(job).trials  # nobody has deleted it
    assert "can read, change and delete every study" in capfd.readouterr().err
    storage.close()


def test_pages_make_no_code_of_text(job):
    with served(job) as running:
        policy = running.get("/dashboard")[2]["Content-Security-Policy"]
    assert "unsafe-eval" not in policy
    assert "script-src 'self'" in policy


# Who may ask ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def echo():
    """A server whose application answers with the method it was asked by."""

    def app(environ, start_response):
        if environ["PATH_INFO"] == "/broken":
            raise RuntimeError("out of order")
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [environ["REQUEST_METHOD"].encode()]

    troubles = []
    with WebServer("127.0.0.1", 0, troubles.append) as server:
        server.answer_with(app)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        server.troubles = troubles
        yield server
        server.shutdown()
        thread.join()


NAMES = [
    "127.0.0.1",
    "127.0.0.1:9000",
    "localhost",
    "LocalHost:9000",
    "[::1]:80",
    "192.0.2.7:8080",
    socket.gethostname(),
]
STRANGERS = ["", "evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "[::1", "a b"]


@pytest.mark.parametrize("host", NAMES + STRANGERS)
def test_a_page_of_another_name_is_refused(echo, host):
    """As DNS rebinding would ask: the right address by a wrong name."""
    status, body, headers = ask(echo.server_port, "/", headers={"Host": host})
    assert (status, body) == (200, "GET") if host in NAMES else status == 403 and body.startswith("Refused: ")
    assert headers["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize(
    ("method", "origin", "status"),
    [
        ("DELETE", None, 200),  # not a browser
        ("DELETE", "http://localhost:9000", 200),
        ("DELETE", "http://localhost:8000", 403),
        ("POST", "http://evil.example", 403),
        ("POST", "null", 403),
        ("GET", "http://evil.example", 200),  # which the browser keeps from that page
    ],
)
def test_only_its_own_pages_change_something(echo, method, origin, status):
    headers = {"Host": "localhost:9000"} | ({} if origin is None else {"Origin": origin})
    assert ask(echo.server_port, "/", method, headers)[0] == status


def test_what_goes_wrong_in_an_answer_is_told(echo):
    assert ask(echo.server_port, "/broken")[0] == 500
    assert echo.troubles == ["RuntimeError: out of order"]
    with socket.create_connection(("127.0.0.1", echo.server_port)) as rude:
        rude.sendall(b"GET / HTTP/1.0\r\nHost: localhost\r\n")
    assert ask(echo.server_port, "/")[:2] == (200, "GET")


def test_where_a_server_is_found():
    with WebServer("localhost", 0, print) as server:
        assert server.is_loopback
        assert server.url == f"http://{socket.gethostbyname('localhost')}:{server.server_port}"
        server.server_name = "0.0.0.0"  # noqa: S104 (as if it listened to everybody)
        assert (server.is_loopback, server.url) == (False, f"http://127.0.0.1:{server.server_port}")
        server.server_name = "::"
        assert (server.is_loopback, server.url) == (False, f"http://[::1]:{server.server_port}")
    with pytest.raises(InvalidInputError, match="--port"):
        WebServer("127.0.0.1", -1, print)
