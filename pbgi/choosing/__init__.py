"""What comes next: a function of space, settings and trials, and of nothing else.

state.py       RunState: space, direction, settings and trials, what follows from them, and all of it as JSON
fitting.py     the models of a run, fitted to its trials: when, and what is noted for the next fit
choice.py      the next point; what the stop rules say
partial.py     the same of all trials that have not come to their end, as observations with a known error
going_on.py    whether a trial that has begun is worth going on with
elsewhere.py   the same for trials that something else chooses: hyperparameters of the last fit
"""
