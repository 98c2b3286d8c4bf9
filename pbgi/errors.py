"""Every error this package raises on purpose.

    PbgiError
    ├── BrokenFunctionError (RuntimeError) the function to minimize has failed again and again
    ├── InvalidInputError (ValueError)    an argument breaks a stated rule
    ├── MissingPackageError (ImportError) an optional package is not installed
    ├── NothingLeftError (RuntimeError)   there is no point left to suggest
    ├── TrialStateError (RuntimeError)    a trial cannot go from the state it is in to the one asked for
    ├── UnknownArgumentError (TypeError)  a keyword argument that nobody knows
    └── UnknownTrialError (LookupError)   no trial has this number

Each class also inherits the builtin a caller would have guessed, so `except ValueError` keeps working.
A message states the rule, the value received and, where there is one, the way out.

`StopRun` is no error: users raise it to end a run of `minimize`.
"""


class PbgiError(Exception):
    """Base of all errors raised by pbgi."""


class BrokenFunctionError(PbgiError, RuntimeError):
    """The function to minimize has failed again and again and never gave a value; the message holds its traceback."""


class InvalidInputError(PbgiError, ValueError):
    """An argument breaks a rule; the message names the argument, the value and the rule."""


class MissingPackageError(PbgiError, ImportError):
    """An optional package is not installed; the message says what to install."""


class NothingLeftError(PbgiError, RuntimeError):
    """No point is left to suggest: every one has been tried, or none fits the budget; the message says which."""


class TrialStateError(PbgiError, RuntimeError):
    """A finished trial was told something that contradicts its record; the message states both."""


class UnknownArgumentError(PbgiError, TypeError):
    """An unknown keyword argument; the message says which one was probably meant."""


class UnknownTrialError(PbgiError, LookupError):
    """No trial has this number; the message says which numbers there are."""


class StopRun(Exception):  # noqa: N818 (no error, as StopIteration is none)
    """Raise it in a callback or in the function to end the run; `minimize` then returns the result so far.

    The text given to it is the message of the result.
    """
