"""Conditions on outcomes of trials.

constraint.py    AtMost, AtLeast: which trials keep them, and which one binds
feasibility.py   how likely points are to keep them, and the cost per trial that does
"""
