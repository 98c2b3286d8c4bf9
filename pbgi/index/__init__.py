"""The Gittins index of a box with a Gaussian prize, and the two functions it is made of.

gittins.py         log_h, its inverse, gittins_index with derivatives: one implementation for NumPy and torch
instalments.py     instalment_index with derivatives: of boxes that are paid in stages, and may be given up after each
boundaries.py      where going on with such a box stops paying, from the last stage back
stage_gradient.py  how that moves with deviations and prices, from the first stage on
smear.py           a law held as points with masses, and what Gaussian noise does to it
arguments.py       what comes in and goes out: arrays or tensors, checked
autograd.py        lets torch differentiate all this by its closed forms; imported only when a tensor comes in
"""

from pbgi.index.gittins import gittins_index, gittins_index_and_grad, inverse_log_h, log_h, log_h_and_grad
from pbgi.index.instalments import instalment_index, instalment_index_and_grad

__all__ = [
    "gittins_index",
    "gittins_index_and_grad",
    "instalment_index",
    "instalment_index_and_grad",
    "inverse_log_h",
    "log_h",
    "log_h_and_grad",
]
