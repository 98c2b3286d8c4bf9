"""What is nobody else's business: files that only their owner may read, and passwords that are never printed.

Files have mode 0600 whatever the umask. Their names can be guessed, and the folder may be one that others write to. So
a name that is a symbolic link is refused: it would have us write, or lock, a file of somebody else's choice.

Nothing that is printed holds the password of a storage URL, whoever wrote the message, and no program that is run is
given one. A URL that a user got wrong has a password too, in a place that no parser knows. So whatever stands where a
password might is taken for one.
"""

import errno
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

# Files ---------------------------------------------------------------------------------------------------------------


FILE_MODE, FOLDER_MODE = 0o600, 0o700


def make_folder(path: Path) -> Path:
    """The folder, made with its parents if need be; ours are closed to others."""
    if not path.parent.exists():
        make_folder(path.parent)
    path.mkdir(mode=FOLDER_MODE, exist_ok=True)
    return path


def open_private(path: Path, flags: int = os.O_TRUNC | os.O_NOFOLLOW) -> BinaryIO:
    """A file for writing, made with mode 0600."""
    return os.fdopen(_made(path, os.O_WRONLY | flags), "wb")


def open_lock(path: Path) -> int:
    """The descriptor of a file to be locked, made with mode 0600 if need be."""
    return _made(path, os.O_RDWR | os.O_NOFOLLOW)


def _made(path: Path, flags: int) -> int:
    try:
        return os.open(path, os.O_CREAT | os.O_CLOEXEC | flags, FILE_MODE)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise OSError(errno.ELOOP, "must not be a symbolic link", str(path)) from None


def touch_private(path: Path) -> None:
    """Make an empty file with mode 0600 unless there is one."""
    open_private(path, os.O_NOFOLLOW).close()


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file that is there entirely or not at all, also after a power cut."""
    draft = path.with_name(path.name + ".draft")
    with open_private(draft) as file:
        file.write(json.dumps(value).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def tail(path: Path, most_bytes: int) -> str:
    """The end of a file as text, whatever its bytes; empty if there is none."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - most_bytes, 0))
            return file.read(most_bytes).decode("utf-8", errors="replace")
    except OSError:
        return ""


# Passwords -----------------------------------------------------------------------------------------------------------


STORAGE_VARIABLE = "PBGI_STORAGE"
MASK = "***"
_KEY = r"[\w-]*(?:password|passwd|pwd|secret|token)[\w-]*="
_IN_QUERY = re.compile(rf"([?&;\s]{_KEY})([^&;\s'\"]*)", re.IGNORECASE)
_IN_USER_INFO = re.compile(r"(//[^\s'\"]*?:|//)([^\s/'\"]*)@")
_PORT_THAT_IS_NONE = re.compile(r"(//[^\s:/@'\"]*:)([^\s/?@'\"]*[^\s/?@'\"\d][^\s/?@'\"]*)")


def masked(text: str, *urls: str | None) -> str:
    """The text without the secrets of these URLs, and without anything that looks like one."""
    for secret in sorted({s for url in urls if url for s in _secrets(url)}, key=len, reverse=True):
        text = text.replace(secret, MASK)
    text = _IN_USER_INFO.sub(rf"\1{MASK}@", text)
    return _IN_QUERY.sub(rf"\1{MASK}", _PORT_THAT_IS_NONE.sub(rf"\1{MASK}", text))


def for_commands(environment: Mapping[str, str]) -> dict[str, str]:
    """What a trial's command gets of our environment: it has no business in the storage."""
    return {name: value for name, value in environment.items() if name != STORAGE_VARIABLE}


def _secrets(url: str) -> set[str]:
    """The passwords in a URL, as written and as meant."""
    found = {match[2] for match in (*_IN_QUERY.finditer(url), *_PORT_THAT_IS_NONE.finditer(url))}
    user_info, at, _ = (url.partition("//")[2] or url).rpartition("@")
    password = user_info.partition(":")[2] if at else ""
    # With a sign that should have been escaped it is unclear which piece somebody else will quote.
    found |= {password, *re.split("[:@/]", password)}
    return {form for secret in found for form in (secret, unquote(secret)) if len(form) > 2 or form == password} - {""}
