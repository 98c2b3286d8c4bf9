"""The command line in this process."""

import json

from pbgi.cli import main


def said(capfd, *arguments, status=0):
    """What a command has printed: the JSON on standard output, or else what is on standard error."""
    code = main([str(a) for a in arguments])
    out, err = capfd.readouterr()
    assert code == status, err
    return json.loads(out) if out else err
