"""Many runs at once on torch, one step of all of them after another: hours on a processor are minutes on a GPU.

posterior.py     Gaussian processes of many runs, each on its own points
fit.py           their hyperparameters
climb.py         climbs of many runs from many starts, as `pbgi.search.climb` climbs
acquisition.py   what the climbs maximize
search.py        pool and starts, as `pbgi.search` has them, and the best point of every run
campaign.py      runs of one shape, from their start until their budgets are spent
runner.py        which runs can be done so, in which groups, and where the results go

Random numbers, pools, starts of climbs, priors and rules are those of the engine in NumPy (`paper.execution`), and the
arithmetic is in float64: from the same seed the first suggestions are the same to many digits, until a rounding error
has grown, and all of them are as likely. `tests/paper/test_batched.py` compares.
"""
