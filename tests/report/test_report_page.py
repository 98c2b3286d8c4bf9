"""The page: complete, escaped everywhere, and written whole or not at all."""

import base64
import hashlib
import html
import json
import re
import stat
from html.parser import HTMLParser

import pytest
from report_runs import HOSTILE, ODD, hostile_study, lucky, ordinary, random_study

import pbgi
from pbgi.display.wording import number, text
from pbgi.report import figures, write_report
from pbgi.report.page import draw_page
from pbgi.report.source import subject_of


def report_page(subject, title=""):
    return draw_page(subject, title).html()


class Page(HTMLParser):
    """Elements, attributes, scripts and visible text of a page, as a parser of the standard library sees them."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.scripts, self.words = [], [], [], []
        self._in_script = False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self._in_script = tag == "script"
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag):
        if tag == "script":
            self._in_script = False

    def handle_data(self, data):
        if self._in_script:
            attrs, before = self.scripts[-1]
            self.scripts[-1] = attrs, before + data
        else:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def rows_in_cards(subject):
    """The parameters of the best trial, and of the recommended one where that is another."""
    return len(subject.best.params) * (1 + (subject.recommended.trial.number != subject.best.number))


@pytest.fixture(scope="module")
def subject():
    return subject_of(ordinary(), unit="euro", name="demo")


@pytest.fixture(scope="module")
def written(subject):
    return report_page(subject)


def test_the_result_is_in_words_at_the_top(subject, written):
    page = Page(written)
    assert "Report on demo" in page.text
    top = page.text[: page.text.index("Best value against cost")]
    for name, value in subject.best.params.items():
        assert f"{name} {text(value)}" in top
    assert "Where it stands" in top
    assert "What to try next" in top
    assert f"from trial {subject.best.number}" in top


def test_the_recommended_trial_is_beside_the_best_where_it_is_another():
    subject = subject_of(lucky())
    best, chosen = subject.best, subject.recommended
    page = Page(report_page(subject))
    top = page.text[: page.text.index("Where it stands")]
    assert f"Best value {number(best.value, 6)} x {text(best.params['x'])}" in top
    card = f"Recommended, value without noise {number(chosen.median, 6)} x {text(chosen.trial.params['x'])}"
    assert card in top
    only = Page(report_page(subject_of(ODD["one trial"]())))
    assert "Recommended, value" not in only.text


def test_all_plots_and_all_trials_are_there(subject, written):
    page = Page(written)
    data = [json.loads(body) for attrs, body in page.scripts if attrs.get("type") == "application/json"]
    expected = figures(subject)
    assert len(data) == len(expected)
    assert [len(figure["data"]) for figure in data] == [len(figure.data) for figure in expected.values()]
    assert page.tags.count("tr") == rows_in_cards(subject) + 1 + len(subject.trials)
    assert "it broke" in page.text
    assert page.text.count("running") >= 1


def test_nothing_is_loaded_from_anywhere(written):
    page = Page(written)
    loading = [(name, value) for name, value in page.attributes if name in ("src", "href", "action", "data", "srcset")]
    assert loading == []
    assert "link" not in page.tags
    style = re.search(r"<style>(.*?)</style>", written, re.DOTALL)[1]
    assert "url(" not in style
    assert "@import" not in style


@pytest.mark.parametrize(("every", "n_scripts"), [(None, 2), (10.0, 3)])
def test_the_policy_allows_these_scripts_and_nothing_else(subject, every, n_scripts):
    written = draw_page(subject).html(every=every)
    page = Page(written)
    policy = next(value for name, value in page.attributes if name == "content" and "default-src" in value)
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "http" not in policy
    run = [body for attrs, body in page.scripts if not attrs]
    digests = [base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for body in run]
    assert re.findall(r"'sha256-([^']+)'", policy) == digests
    assert len(run) == n_scripts
    assert [name for name, _ in page.attributes if name.startswith("on")] == []
    # A rule for scripts comes before whatever it should hold for.
    assert written.index("Content-Security-Policy") < written.index("<script")


def test_a_page_loads_itself_again_only_if_it_is_to(subject):
    drawn = draw_page(subject)
    plain, following = Page(drawn.html()), Page(drawn.html(every=2.5))
    assert ("data-every", "2.5") in following.attributes
    assert "every 2.5 seconds" in following.text
    assert "data-every" not in dict(plain.attributes)
    assert "loads itself" not in plain.text
    assert not any("location.reload" in body for attrs, body in plain.scripts if not attrs and len(body) < 10_000)


def test_hostile_names_stay_text():
    subject = subject_of(hostile_study(), unit=HOSTILE[1])
    plain = Page(report_page(subject_of(random_study(4))))
    page = Page(report_page(subject, title=HOSTILE[2]))
    assert set(page.tags) <= set(plain.tags)  # no element that an ordinary page does not have
    assert not {"img", "a", "b"} & set(page.tags)
    assert len([1 for attrs, _ in page.scripts if not attrs]) == 2
    for name in HOSTILE:
        assert " ".join(text(name).split()) in page.text, name
    assert HOSTILE[0] not in report_page(subject)
    assert html.escape(HOSTILE[1]) in report_page(subject)


@pytest.mark.parametrize(
    "name", ["empty", "empty study", "all failed", "one running", "nothing varies", "known before"]
)
def test_odd_runs_have_a_page(name):
    page = Page(report_page(subject_of(ODD[name]())))
    assert "Where it stands" in page.text
    assert page.text.count("nan") == 0


def test_very_many_trials_are_cut(monkeypatch):
    monkeypatch.setattr("pbgi.report.page.MOST_ROWS", 5)
    subject = subject_of(random_study(9))
    page = Page(report_page(subject))
    assert page.tags.count("tr") == rows_in_cards(subject) + 1 + 5
    assert "The latest 5 of 9." in page.text


def test_a_report_replaces_another_and_leaves_nothing_else(tmp_path, subject):
    path = tmp_path / "report.html"
    path.write_text("before")
    assert write_report(subject, str(path), title="A title") == path
    assert "<title>A title</title>" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600  # parameters and results are nobody else's business
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_report_that_cannot_be_written_leaves_what_was_there(tmp_path, subject, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("before")

    def full(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_report(subject, path)
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(FileNotFoundError):
        write_report(subject, tmp_path / "no" / "such" / "folder.html")


def test_a_title_is_a_text(tmp_path, subject):
    with pytest.raises(pbgi.InvalidInputError, match="title must be a str"):
        write_report(subject, tmp_path / "x.html", title=3)
    assert list(tmp_path.iterdir()) == []
