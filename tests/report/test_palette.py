"""Labels at the ends of lines, and colors that stay apart."""

import itertools
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from pbgi.report import palette

# Of light that reaches a deuteranope and a protanope (Viénot, Brettel and Mollon, 1999), in linear RGB.
DEFICIENT = {
    "protan": np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]]),
    "deutan": np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]]),
}


def linear(color):
    channels = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = np.array([0.95047, 1.0, 1.08883])
NOTICEABLE = 2.3  # a distance in CIELAB that can just be seen


def lab(light):
    """Linear RGB in CIELAB, where distances are as the eye sees them."""
    share = TO_XYZ @ light / WHITE
    f = np.where(share > 0.008856, np.cbrt(share), 7.787 * share + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("kind", DEFICIENT)
def test_main_colors_stay_apart_for_color_blind_readers(kind):
    main = (palette.BLUE, palette.VERMILLION, palette.GREEN, palette.PURPLE)
    seen = [lab(np.clip(DEFICIENT[kind] @ linear(color), 0.0, 1.0)) for color in main]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 5 * NOTICEABLE


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8))
def test_labels_are_a_gap_apart_in_their_order(heights):
    placed = palette.apart(heights, 0.1)
    order = sorted(range(len(heights)), key=heights.__getitem__)
    assert all(placed[b] - placed[a] >= 0.1 - 1e-9 for a, b in itertools.pairwise(order))
    assert np.mean(placed) == pytest.approx(np.mean(heights), abs=1e-9)


def test_labels_with_room_stay_where_they_are():
    assert palette.apart([0.5, 0.1, 0.9], 0.1) == [0.5, 0.1, 0.9]


def test_labels_are_at_the_height_of_their_lines():
    with mpl.rc_context(palette.MATPLOTLIB):
        axes = Figure().subplots()
        axes.set(yscale="log", ylim=(0.01, 100.0), xlim=(0, 1))
        palette.label_ends(axes, [(1.0, "middle", palette.BLUE), (10.0, "high", palette.GREEN)])
    assert [text.get_position()[1] for text in axes.texts] == pytest.approx([0.5, 0.75])
    assert [text.get_text() for text in axes.texts] == ["middle", "high"]


SCRIPTS = [p for folder in ("examples", "benchmarks") for p in (Path(__file__).parents[2] / folder).glob("*.py")]
DRAWING = [script for script in SCRIPTS if ".savefig(" in script.read_text()]


@pytest.mark.parametrize("script", DRAWING, ids=lambda script: script.name)
def test_pictures_of_examples_and_benchmarks_have_these_colors(script):
    text = script.read_text()
    assert "import palette" in text
    named = set(re.findall(r"#[0-9A-Fa-f]{6}", text))
    assert script.name == "draw_simulators.py" or not named  # whose lander looks as it does elsewhere
