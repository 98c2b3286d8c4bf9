"""Files that only their owner may read, and passwords that are never shown."""

import os
import stat

import pytest

from pbgi.cli.private import make_folder, masked, open_private, write_json
from pbgi.cli.storage import Storage, url_of_file


def test_files_are_private_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        make_folder(tmp_path / "a" / "b")
        write_json(tmp_path / "a" / "b" / "c.json", {"x": 1})
        open_private(tmp_path / "a" / "d").close()
        Storage(url_of_file(tmp_path / "a" / "study.db"), create=True).close()
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a").rglob("*")}
    assert modes == {"b": 0o700, "c.json": 0o600, "d": 0o600, "study.db": 0o600, "study.db.lock": 0o600}


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cr3t@host:5432/db",
        "postgresql+psycopg2://me:s3cr3t@host/db?sslmode=require",
        "mysql://host/db?user=me&password=s3cr3t",
        "mysql://host/db?ssl_passwd=s3cr3t&x=1",
        "postgresql://me:s3cr3t",
        "postgres//me:s3cr3t@host",
        "nonsense://me:a@b:s3cr3t@host",
    ],
)
def test_passwords_are_masked(url):
    for text in (f"could not connect to {url}", f"'{url}' is wrong", "s3cr3t is not the password of me"):
        assert "s3cr3t" not in masked(text, url)


def test_passwords_are_masked_as_meant():
    assert masked("FATAL: a@b/c is wrong, a%40b%2Fc", "postgresql://me:a%40b%2Fc@host/db") == "FATAL: *** is wrong, ***"
