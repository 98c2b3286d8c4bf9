"""Trials that have begun and have no value yet.

partial.py    what they say: observations of last values, with correlated errors
going_on.py   whether one is worth going on with, or a stopped one
"""
