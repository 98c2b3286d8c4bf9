"""The program of a job: run, listened to, and what it said.

command.py   one run of the command of a trial: started, listened to, ended; logs
result.py    what it said in the end: the value and the cost
steps.py     what it says on its way
"""
