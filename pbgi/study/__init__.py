"""An Optuna study as settings and trials of the engine: what the sampler, the command line and reports stand on.

attributes.py      the names under which anything is stored with a study or a trial
settings.py        what `pbgi tune` stores with a study
suggestion.py      what is stored of a suggestion
storage.py         the only lines that touch Optuna's storage by private names
ledger.py          what trials are charged
sound.py           what a storage hands back is checked
late.py            results of trials that were given up
spaces.py          distributions as a space, and values there and back
learned.py tree.py what trials show of the space, and of which parameters depend on which
engine.py          from the ledger of a study to an optimizer with its trials
turn.py lock.py    one worker chooses at a time
"""
