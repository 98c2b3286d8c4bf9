"""Draw the two simulators among the test problems: the lunar lander, and the hands that push a square and a disc.

    python examples/draw_simulators.py --out demo-output

Needs `pip install 'gymnasium[box2d]' matplotlib`.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pbgi.problems.lunar_lander import LEFT_ENGINE, MAIN_ENGINE, NOTHING, Step, action, fly, new_environment
from pbgi.problems.robot_pushing import (
    DISC_RADIUS,
    HAND_HALF_SIDES,
    SQUARE_HALF_SIDE,
    STARTS,
    TARGETS,
    push,
    robot_pushing,
)
from pbgi.report import palette

# Weights drawn at random, and those of the heuristic that comes with gymnasium.
RANDOM_WEIGHTS = (0.64, 0.27, 0.04, 0.02, 0.81, 0.91, 0.61, 0.73, 0.54, 0.94, 0.82, 0.0)
GOOD_WEIGHTS = (0.5, 1.0, 0.4, 0.55, 0.5, 1.0, 0.5, 0.5, 0.0, 0.5, 0.05, 0.05)
SHOWN_SEED, N_FLIGHTS = 1, 12
STEPS_BETWEEN_POSES = 14
# gymnasium's world: the screen, the hull and the height of the hull's center over the pad, in its units of length.
WIDTH, HEIGHT, HULL_HEIGHT = 20.0, 40.0 / 3.0, 0.6
HULL = np.array([(-14, 17), (-17, 0), (-17, -10), (17, -10), (17, 0), (14, 17)]) / 30.0
LEGS = [np.array([(side * 12, -8), (side * 22, -18)]) / 30.0 for side in (-1, 1)]

# Hands that go straight for the objects; and a point found by search, where both start in the square and throw it out.
AIMED_PUSH = (-1.5, -3.0, 2.5, 0.7, 14.0, 1.2, -4.2, 1.2, 3.4, 0.5, 20.0, 1.9, 0.6, 2.0)
GOOD_PUSH = (0.15, 2.01, 0.01, 0.0, 20.51, 6.09, 0.28, 2.1, 1.9, 0.09, 6.6, 4.13, 6.28, 6.21)
N_POSES = 8


def rotated(points: np.ndarray, angle: float) -> np.ndarray:
    cos, sin = math.cos(angle), math.sin(angle)
    return points @ np.array([[cos, sin], [-sin, cos]])


# The lander.


def position(state: Sequence[float]) -> np.ndarray:
    """From the observation back to the world."""
    return np.array([WIDTH / 2 * (1 + state[0]), HEIGHT / 2 * state[1] + HEIGHT / 4 + HULL_HEIGHT])


def draw_lander(axes: Any, step: Step, *, engine: int) -> None:
    center, tilt = position(step.state), step.state[4]
    if engine == MAIN_ENGINE:
        flame = rotated(np.array([(-8, -10), (0, -34), (8, -10)]) / 30.0, tilt) + center
        axes.fill(*flame.T, color="#F0A030", zorder=3, lw=0)
    elif engine != NOTHING:
        side = 1 if engine == LEFT_ENGINE else -1  # the engine that turns the lander to the left blows to the right
        flame = rotated(np.array([(side * 15, 17), (side * 30, 13), (side * 15, 9)]) / 30.0, tilt) + center
        axes.fill(*flame.T, color="#F0A030", zorder=3, lw=0)
    for leg in LEGS:
        axes.plot(*(rotated(leg, tilt) + center).T, color="#4B3F8F", lw=1.4, zorder=4)
    axes.fill(*(rotated(HULL, tilt) + center).T, facecolor="#8066E6", edgecolor="#4B3F8F", lw=0.7, zorder=4)


def draw_flights(axes: Any, weights: Sequence[float], title: str) -> None:
    environment = new_environment()
    rewards = []
    for seed in range(N_FLIGHTS):
        steps = list(fly(environment, weights, seed))
        rewards.append(sum(step.reward for step in steps))
        path = np.array([position(step.state) for step in steps])
        if seed != SHOWN_SEED:
            axes.plot(*path.T, color=palette.GREY, lw=0.8, alpha=0.5, zorder=2)
            continue
        axes.plot(*path.T, color=palette.BLUE, lw=1.8, zorder=2)
        axes.fill_between(*ground(environment).T, color="#D8D4CC", zorder=1)
        for step in steps[:-STEPS_BETWEEN_POSES:STEPS_BETWEEN_POSES]:
            draw_lander(axes, step, engine=action(step.state, weights))
        draw_lander(axes, steps[-1], engine=NOTHING)
    pad = [environment.helipad_x1, environment.helipad_x2]
    axes.plot(pad, [environment.helipad_y] * 2, color=palette.GREEN, lw=4, zorder=3, solid_capstyle="butt")
    axes.text(WIDTH / 2, environment.helipad_y - 0.25, "pad", color=palette.GREEN, ha="center", va="top")
    axes.set(xlim=(0, WIDTH), ylim=(0, HEIGHT + 1.2), xticks=[], yticks=[], aspect="equal")
    axes.set_title(f"{title}: reward {rewards[SHOWN_SEED]:.0f}, mean of {N_FLIGHTS} flights {np.mean(rewards):.0f}")


def ground(environment: Any) -> np.ndarray:
    return np.array([environment.sky_polys[0][0], *(polygon[1] for polygon in environment.sky_polys)])


# The table.


def outline(name: str, center: Sequence[float], angle: float) -> np.ndarray:
    if name == "disc":
        turn = np.linspace(0, 2 * np.pi, 60)
        return DISC_RADIUS * np.column_stack([np.cos(turn), np.sin(turn)]) + center
    half = (SQUARE_HALF_SIDE, SQUARE_HALF_SIDE) if name == "square" else HAND_HALF_SIDES
    corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)]) * half
    return rotated(corners, angle) + center


def recorded(params: dict) -> dict[str, np.ndarray]:
    """Where each body was after every step: x, y and angle."""
    rows: dict[str, list[tuple[float, float, float]]] = {"square": [], "disc": [], "hand 1": [], "hand 2": []}
    for scene in push(params):
        bodies = (scene.square, scene.disc, *scene.hands)
        for name, body in zip(rows, bodies, strict=True):
            rows[name].append((*body.position, body.angle))
    return {name: np.array(row) for name, row in rows.items()}


def draw_push(axes: Any, point: Sequence[float], title: str) -> None:
    problem = robot_pushing(cost="unknown")
    params = dict(zip(problem.space.names, point, strict=True))
    value, cost = problem.evaluate(params)
    styles = {"square": palette.BLUE, "disc": palette.GREEN, "hand 1": palette.VERMILLION, "hand 2": palette.PURPLE}
    for name, poses in recorded(params).items():
        color, is_hand = styles[name], name.startswith("hand")
        first, last = poses[0], poses[-1]
        axes.plot(*outline(name, first[:2], first[2]).T, color=color, lw=1, ls=":", zorder=3)
        for pose in poses[:: max(1, len(poses) // N_POSES)]:
            axes.plot(*outline(name, pose[:2], pose[2]).T, color=color, lw=0.5, alpha=0.35, zorder=2)
        axes.plot(*poses[:, :2].T, color=color, lw=1.8, zorder=5, label=name)
        axes.fill(*outline(name, last[:2], last[2]).T, color=color, alpha=0.35 if is_hand else 0.6, zorder=4, lw=0)
    for name, target in zip(("square", "disc"), TARGETS, strict=True):
        axes.plot(*target, marker="X", color=styles[name], ms=11, mec="white", zorder=6)
    axes.text(-4.1, -5.1, "targets", ha="center", va="top")
    axes.set(aspect="equal", xlim=(-6, 6), ylim=(-6, 6), title=f"{title}: value {value:.2f}, cost {cost:.1f}")


def start_value() -> float:
    return -sum(math.dist(start, target) for start, target in zip(STARTS, TARGETS, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the lunar lander and the pushing hands.")
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder for the pictures")
    out: Path = parser.parse_args().out
    try:
        import matplotlib as mpl

        robot_pushing()
        new_environment()
    except ImportError as error:
        sys.exit(f"{error}\nThis example needs: pip install 'gymnasium[box2d]' matplotlib")
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    out.mkdir(parents=True, exist_ok=True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.9), layout="constrained")
    figure.suptitle(f"One flight, drawn every {STEPS_BETWEEN_POSES} steps; grey: other flights, over other ground")
    draw_flights(left, RANDOM_WEIGHTS, "Weights drawn at random")
    draw_flights(right, GOOD_WEIGHTS, "A good controller")
    figure.savefig(out / "lunar_lander.png", dpi=110, bbox_inches="tight")
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 6.1), layout="constrained")
    draw_push(left, AIMED_PUSH, "Straight at the objects")
    draw_push(right, GOOD_PUSH, "Found by search")
    right.legend(loc="upper right", frameon=False)
    figure.suptitle(f"Dotted: at the start; filled: at the end. If nothing moves, the value is {start_value():.2f}")
    figure.savefig(out / "robot_pushing.png", dpi=110, bbox_inches="tight")
    print(f"pictures: {out / 'lunar_lander.png'}, {out / 'robot_pushing.png'}")


if __name__ == "__main__":
    main()
