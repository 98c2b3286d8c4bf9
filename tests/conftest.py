"""What holds for every test."""

import pytest


@pytest.fixture(autouse=True)
def no_storage_variable(monkeypatch):
    """Commands use the storage that a test gives them, not one that the developer has set."""
    monkeypatch.delenv("PBGI_STORAGE", raising=False)
