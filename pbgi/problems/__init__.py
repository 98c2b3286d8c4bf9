"""The paper's test problems: spaces, objectives that say what they cost, budgets and known optima.

Each function makes a frozen `Problem`, ready for `minimize` or an `Optimizer`. The simulators need `gymnasium[box2d]`
(`pip install 'gymnasium[box2d]'`), which is imported when one of them is made; the others need nothing more than pbgi.
"""

from pbgi.problems.gp_prior import gp_draw
from pbgi.problems.lunar_lander import lunar_lander
from pbgi.problems.modulated_gp import ModulatedGP
from pbgi.problems.one_dimensional import hard_for_ei, hard_for_eipc
from pbgi.problems.pest_control import pest_control
from pbgi.problems.problem import Outcome, Problem
from pbgi.problems.robot_pushing import robot_pushing
from pbgi.problems.synthetic import ackley, levy, rosenbrock

__all__ = [
    "ModulatedGP",
    "Outcome",
    "Problem",
    "ackley",
    "gp_draw",
    "hard_for_ei",
    "hard_for_eipc",
    "levy",
    "lunar_lander",
    "pest_control",
    "robot_pushing",
    "rosenbrock",
]
