"""Trials as boxes that are paid in instalments.

curves.py        how values go on from stage to stage, and where a trial will end
instalments.py   what the stages of a trial cost and say, and the index of new trials with them
"""
