"""Reads files of plain data in Python's serialization format, and nothing but plain data.

The tables of `real_tables.py` come in that format. Python's own reader runs whatever code a file asks it to run; this
one knows lists, dicts, strings and floats, has no way of naming a function, and refuses a file that asks for more.
"""

import struct
from collections.abc import Callable
from typing import Any


class NotPlainError(ValueError):
    """A file holds something else than lists, dicts, strings and floats."""


class Reader:
    """A stack machine: each instruction is one byte, with what belongs to it behind."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._stack: list[Any] = []
        self._marks: list[int] = []  # where on the stack the contents of a list or dict begin
        self._seen: list[Any] = []  # what later instructions refer to by its number

    def read(self) -> Any:
        """The one object of the file."""
        while self._at < len(self._data):
            code = self._take(1)
            if code == b".":
                return self._stack.pop()
            if code not in INSTRUCTIONS:
                raise NotPlainError(
                    f"a file may hold only lists, dicts, strings and floats; got instruction {code!r} "
                    f"at byte {self._at - 1}; take the file from another source"
                )
            INSTRUCTIONS[code](self)
        raise NotPlainError(f"a file must end with its stop instruction; got {len(self._data)} bytes without it")

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        self._at += size
        return taken

    def _since_mark(self) -> list[Any]:
        start = self._marks.pop()
        items = self._stack[start:]
        del self._stack[start:]
        return items

    def skip_version(self) -> None:
        """The format's version: what was added later is refused by its instructions."""
        self._take(1)

    def skip_length(self) -> None:
        """The length of the next stretch of the file, for readers that fetch ahead."""
        self._take(8)

    def push_float(self) -> None:
        """Eight bytes, the most significant first."""
        self._stack.append(struct.unpack(">d", self._take(8))[0])

    def push_string(self) -> None:
        """A byte that says how long, and the text."""
        self._stack.append(self._take(self._take(1)[0]).decode())

    def push_list(self) -> None:
        """An empty one."""
        self._stack.append([])

    def push_dict(self) -> None:
        """An empty one."""
        self._stack.append({})

    def mark(self) -> None:
        """Contents of the list or dict on top follow."""
        self._marks.append(len(self._stack))

    def fill_list(self) -> None:
        """With what has come since the mark."""
        items = self._since_mark()
        self._stack[-1].extend(items)

    def fill_dict(self) -> None:
        """With keys and values, by turns, that have come since the mark."""
        items = self._since_mark()
        self._stack[-1].update(zip(items[::2], items[1::2], strict=True))

    def remember(self) -> None:
        """What is on top gets the next number."""
        self._seen.append(self._stack[-1])

    def recall(self) -> None:
        """What has the number that follows."""
        self._stack.append(self._seen[self._take(1)[0]])


INSTRUCTIONS: dict[bytes, Callable[[Reader], None]] = {
    b"\x80": Reader.skip_version,
    b"\x95": Reader.skip_length,
    b"G": Reader.push_float,
    b"\x8c": Reader.push_string,
    b"]": Reader.push_list,
    b"}": Reader.push_dict,
    b"(": Reader.mark,
    b"e": Reader.fill_list,
    b"u": Reader.fill_dict,
    b"\x94": Reader.remember,
    b"h": Reader.recall,
}
