"""Cost-aware optimization by the Pandora's Box Gittins index: the public names, on one page."""

from pbgi.errors import InvalidInputError, PbgiError
from pbgi.index import gittins_index, gittins_index_and_grad, inverse_log_h, log_h

__version__ = "0.1.0"

__all__ = [
    "InvalidInputError",
    "PbgiError",
    "gittins_index",
    "gittins_index_and_grad",
    "inverse_log_h",
    "log_h",
]
