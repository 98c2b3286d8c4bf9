"""Makes the README the home page of the site, so that there is one text of it."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

README = Path(__file__).parents[1] / "README.md"
# Links of the README are relative to the repository: into docs/, or to things that the site does not have.
INTO_DOCS = re.compile(r"\]\(docs/")


def on_files(files: Files, *, config: Any) -> Files:
    """Add the page."""
    text = INTO_DOCS.sub("](", README.read_text(encoding="utf-8"))
    files.append(File.generated(config, "index.md", content=text))
    return files
