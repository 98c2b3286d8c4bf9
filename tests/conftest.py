"""What holds for every test."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Workers with a thread per core wait for each other: five tests of Ax took 67 s of the processors instead of 18. It is
# read when NumPy and torch are imported, which is later, and by the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# How long an example takes is decided by the machine, and by who else is busy on it.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
if not os.access(Path(__file__).parents[1], os.W_OK):  # a read-only checkout: failing examples cannot be kept
    settings.register_profile("read-only", settings.get_profile("any machine"), database=None)
    settings.load_profile("read-only")

# A shell that starts tests in the background has them ignore Ctrl-C, and so would every process they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_storage_variable(monkeypatch):
    """Commands use the storage that a test gives them, not one that the developer has set."""
    monkeypatch.delenv("PBGI_STORAGE", raising=False)
