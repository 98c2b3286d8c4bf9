"""The page in a real Chromium: every plot is drawn, nothing is asked for, names stay text."""

import pytest
from browser import chromium as chromium
from browser import new_tab as new_tab
from report_runs import HOSTILE, ODD, hostile_study, ordinary, random_study

from pbgi.display.wording import text
from pbgi.report import write_report
from pbgi.report.page import draw_page
from pbgi.report.plots import drawn_plots
from pbgi.report.source import subject_of

ALL_DRAWN = "document.querySelectorAll('.plot').length === document.querySelectorAll('.plot[data-drawn]').length"
# What a plot shows: paths and texts of its SVG that lie within it.
MARKS = """
() => [...document.querySelectorAll('.plot')].map(plot => ({
  marks: plot.querySelectorAll('.scatterlayer path, .barlayer path').length,
  texts: [...plot.querySelectorAll('svg text')].map(t => t.textContent),
  width: plot.getBoundingClientRect().width,
  height: plot.getBoundingClientRect().height,
}))
"""
# Text that somebody could not read: pairs of tick labels that overlap by more than a hair.
OVERLAPS = """
() => [...document.querySelectorAll('.plot .xtick, .plot .ytick')].length && [...document.querySelectorAll('.plot')]
  .flatMap(plot => ['g.xaxislayer-above', 'g.yaxislayer-above'].flatMap(layer => [...plot.querySelectorAll(layer)]))
  .flatMap(axis => {
    const boxes = [...axis.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
    return boxes.flatMap(([a, p], i) => boxes.slice(0, i)
      .filter(([, q]) => Math.min(p.right, q.right) - Math.max(p.left, q.left) > 2
                      && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 4)
      .map(([b]) => a + ' | ' + b));
  })
"""
CONTRAST = """
() => {
  const channels = c => c.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const luminance = c => channels(c).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const paper = luminance(getComputedStyle(document.body).backgroundColor);
  const ratio = c => { const [a, b] = [luminance(c), paper].sort(); return (b + 0.05) / (a + 0.05); };
  const drawn = [...document.querySelectorAll('.plot svg text')].map(t => ratio(getComputedStyle(t).fill));
  const written = [...document.querySelectorAll('p, li, td, th, h1, h2')].map(e => ratio(getComputedStyle(e).color));
  return Math.min(...drawn, ...written);
}
"""


def opened(tab, source, tmp_path, *, width=1280, scheme="light", unit="euro", title=""):
    path = write_report(source, tmp_path / "report.html", unit=unit, title=title)
    tab.page.set_viewport_size({"width": width, "height": 900})
    tab.page.emulate_media(color_scheme=scheme)
    tab.page.goto(path.as_uri())
    tab.page.wait_for_function(ALL_DRAWN, timeout=60_000)
    return tab.page


@pytest.fixture(scope="module")
def subject():
    return subject_of(ordinary(24), unit="euro")


def test_every_plot_is_drawn_and_nothing_is_asked_for(tab, subject, tmp_path):
    requests = []
    tab.page.on("request", lambda request: requests.append(request.url))
    page = opened(tab, subject, tmp_path)
    assert tab.troubles == []
    assert requests == [(tmp_path / "report.html").as_uri()]
    shown = page.evaluate(MARKS)
    assert len(shown) == len(list(drawn_plots(subject))) >= 7
    for plot in shown:
        assert plot["marks"] > 0
        assert plot["height"] > 150
    assert page.evaluate("document.querySelectorAll('.plot canvas').length") == 0  # nothing that needs a graphics card
    assert page.evaluate(OVERLAPS) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_schemes(tab, subject, tmp_path, scheme):
    page = opened(tab, subject, tmp_path, scheme=scheme)
    assert page.evaluate(CONTRAST) >= 4.5  # what WCAG asks of text
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 27)"}[scheme]


def test_a_phone_can_show_it(tab, subject, tmp_path):
    page = opened(tab, subject, tmp_path, width=390)
    assert tab.troubles == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390  # what is wider is moved inside its own frame
    assert page.evaluate(OVERLAPS) == []


def test_hostile_names_stay_text(tab, tmp_path):
    page = opened(tab, hostile_study(), tmp_path, unit=HOSTILE[1], title=HOSTILE[2])
    page.mouse.move(400, 900)
    assert page.evaluate("window.hacked") is None
    assert tab.troubles == []
    assert page.evaluate("document.querySelectorAll('main img, main a, main b, svg a').length") == 0
    body = page.evaluate("document.body.textContent")
    for name in HOSTILE:
        assert text(name) in body
    drawn = " ".join(words for plot in page.evaluate(MARKS) for words in plot["texts"])
    assert "<img src=x onerror=windo" in drawn  # as signs, not as an image
    assert HOSTILE[2] in drawn
    assert "%{x} $" in drawn  # no template either
    assert page.title() == HOSTILE[2]


def test_what_a_plot_says_when_pointed_at_stays_text(tab, tmp_path):
    page = opened(tab, hostile_study(), tmp_path)
    bar = page.locator(".barlayer .point path").first
    bar.scroll_into_view_if_needed()
    bar.hover(force=True)
    page.wait_for_selector(".hoverlayer text", timeout=10_000)
    assert page.evaluate("window.hacked") is None
    assert tab.troubles == []


def test_five_hundred_trials(tab, tmp_path):
    page = opened(tab, random_study(500), tmp_path)
    assert tab.troubles == []
    assert page.locator(".trials tbody tr").count() == 500
    assert page.evaluate(MARKS)[0]["marks"] >= 500


@pytest.mark.parametrize("name", ["huge values", "tiny values", "constant values", "one trial", "all failed"])
def test_odd_runs_are_drawn(tab, tmp_path, name):
    page = opened(tab, ODD[name](), tmp_path)
    assert tab.troubles == []
    for plot in page.evaluate(MARKS):
        assert plot["marks"] > 0
    assert "NaN" not in page.evaluate("document.body.innerText")


def test_without_scripts_the_words_and_the_table_are_there(browser, subject, tmp_path):
    path = write_report(subject, tmp_path / "report.html")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.locator(".trials tbody tr").count() == len(subject.trials)
    assert page.locator(".noscript").is_visible()
    assert page.locator(".card").count() == 3
    context.close()


EVERY = 0.5  # seconds
LOADED = "performance.timeOrigin"


def test_a_page_that_follows_a_run_loads_itself_again(tab, subject, tmp_path):
    """At the place where one was; not while it is in use; and the last one stays."""
    path = tmp_path / "report.html"
    draw_page(subject, "first").write(path, every=EVERY)
    tab.page.goto(path.as_uri())
    wait_for_drawn(tab.page, "first")
    asked(tab.page, "scrollTo(0, 700)")
    draw_page(subject, "second").write(path, every=EVERY)
    wait_for_drawn(tab.page, "second")
    for _ in range(40):  # the browser goes back to the place once the page is as long as it was
        if asked(tab.page, "scrollY") == 700:
            break
        tab.page.wait_for_timeout(50)
    assert asked(tab.page, "scrollY") == 700

    loaded = used_since(tab.page)
    tab.page.wait_for_timeout(4 * 1000 * EVERY)
    assert tab.page.evaluate(LOADED) == loaded

    draw_page(subject, "last").write(path)
    wait_for_drawn(tab.page, "last")
    loaded = tab.page.evaluate(LOADED)
    tab.page.wait_for_timeout(8 * 1000 * EVERY)
    assert tab.page.evaluate(LOADED) == loaded
    assert tab.troubles == []


def asked(page, expression):
    """What a page that is loaded again every moment says: a question in that very moment is put again."""
    for _ in range(20):
        try:
            return page.evaluate(expression)
        except Exception as error:
            if "context was destroyed" not in str(error):
                raise
    raise AssertionError("the page is never there")


def used_since(page):
    """When the page was loaded that has noticed the mouse, and not the one before it, which was on its way out."""
    for attempt in range(20):
        page.mouse.move(300, 300 + attempt)
        loaded = asked(page, LOADED)
        page.wait_for_timeout(2 * 1000 * EVERY)
        if asked(page, LOADED) == loaded:
            return loaded
    raise AssertionError("the page is loaded again while it is in use")


def wait_for_drawn(page, heading):
    """Until the first plot is there; by the elements alone, for the page lets nobody evaluate a condition twice."""
    page.get_by_role("heading", name=heading, exact=True).wait_for(timeout=60_000)
    page.locator(".plot[data-drawn]").first.wait_for(timeout=60_000)
