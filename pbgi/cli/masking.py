"""Storage URLs without their passwords: nothing that is printed may hold one, whoever wrote the message, and no program
that is run is given one.

A URL that a user got wrong has a password too, in a place that no parser knows. So whatever stands where a password
might is taken for one.
"""

import re
from collections.abc import Mapping
from urllib.parse import unquote

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
