"""The finite Pandora's Box problem, solved exactly.

boxes.py               Box, solve, Solution and how it is played
staged.py              StagedBox, MarkovBox: boxes that are paid in stages
game.py                what happened in a game
in_words.py            a solution at the prompt and in a notebook
budget.py              the search for the cost_scale of a budget
weitzman.py            the rule at one cost_scale, one payment each: order, spend, expected net
staged_solution.py     the same where boxes have stages: StagedSolution
levels.py              what a box with stages is worth at each, and with what probability
rewards.py             what may be in a box: Gaussian, Discrete, frozen scipy distributions, samples
families.py            the same by family: index, log distribution function, supremum, for all members at once
improvement_table.py   expected improvement of continuous families from a table
prefix_sum.py          sums of log distribution functions over the first boxes of an order
quadrature.py          integration over many panels at once
"""

from pbgi.pandora.boxes import Box, Solution, solve
from pbgi.pandora.game import Game, Opening
from pbgi.pandora.rewards import Discrete, Gaussian
from pbgi.pandora.staged import MarkovBox, StagedBox
from pbgi.pandora.staged_solution import StagedSolution

__all__ = [
    "Box",
    "Discrete",
    "Game",
    "Gaussian",
    "MarkovBox",
    "Opening",
    "Solution",
    "StagedBox",
    "StagedSolution",
    "solve",
]
