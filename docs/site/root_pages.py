"""Pages of the site from files at the root: one text of each."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
INTO_DOCS = re.compile(r"\]\(docs/")  # links of these files are relative to the root


def text_of(name: str) -> str:
    """A file of the root as a page of the site."""
    text = INTO_DOCS.sub("](", (ROOT / name).read_text(encoding="utf-8"))
    if name == "README.md":
        text = f"---\nhide: [navigation]\n---\n{text}"  # there is one page in its tab
    # Notebooks are pages of the site, see `notebooks.py`.
    text = text.replace(".ipynb)", ".md)")
    for file, page in PAGES.items():
        text = text.replace(f"]({file}", f"]({page}")
    return text


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages."""
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=text_of(name)))
    return files
