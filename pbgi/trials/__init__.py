"""What a trial is: a frozen record, and what it says on its way.

trial.py   Trial, TrialState: a record that checks itself, to JSON and back
steps.py   Report, Steps: what is said on the way, and where it is decided whether a trial goes on
"""
