"""Every error this package raises on purpose.

    PbgiError
    └── InvalidInputError (ValueError)    an argument breaks a stated rule

Each class also inherits the builtin a caller would have guessed, so `except ValueError` keeps working.
A message states the rule, the value received and, where there is one, the way out.
"""


class PbgiError(Exception):
    """Base of all errors raised by pbgi."""


class InvalidInputError(PbgiError, ValueError):
    """An argument breaks a rule; the message names the argument, the value and the rule."""
