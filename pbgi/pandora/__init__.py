"""The finite Pandora's Box problem, solved exactly.

boxes.py               Box, solve, Solution, play, and the search for the cost_scale of a budget
weitzman.py            the rule at one cost_scale: order, spend, expected net
rewards.py             what may be in a box: Gaussian, Discrete, frozen scipy distributions, samples
families.py            the same by family: index, log distribution function, supremum, for all members at once
improvement_table.py   expected improvement of continuous families from a table
prefix_sum.py          sums of log distribution functions over the first boxes of an order
quadrature.py          integration over many panels at once
"""

from pbgi.pandora.boxes import Box, Solution, solve
from pbgi.pandora.game import Game, Opening
from pbgi.pandora.rewards import Discrete, Gaussian

__all__ = ["Box", "Discrete", "Game", "Gaussian", "Opening", "Solution", "solve"]
