"""The Gittins index of a box with a Gaussian prize, and the two functions it is made of.

gittins.py     log_h, its inverse, gittins_index with derivatives: one implementation for NumPy and torch
autograd.py    lets torch differentiate it by its closed forms; imported only when a tensor comes in
"""

from pbgi.index.gittins import gittins_index, gittins_index_and_grad, inverse_log_h, log_h, log_h_and_grad

__all__ = ["gittins_index", "gittins_index_and_grad", "inverse_log_h", "log_h", "log_h_and_grad"]
