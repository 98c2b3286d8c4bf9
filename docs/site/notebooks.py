"""Notebooks of docs/tutorials as pages: text, code, and what it printed and drew.

The outputs are those kept in the notebooks; nothing is run here, but by
`tests/test_tutorials.py`.
"""

import base64
import json
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

PICTURE = "image/png"


def page_of(notebook: Path) -> tuple[str, dict[str, bytes]]:
    """The page as Markdown, and its pictures by name."""
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    for number, cell in enumerate(cells):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif source:
            parts.append(f"```python\n{source}\n```")
            for place, output in enumerate(cell["outputs"]):
                name = f"{notebook.stem}-{number}-{place}.png"
                parts.append(shown(output, name, pictures))
    parts.append(f"*This page is a notebook: [download it]({notebook.name}).*")
    return "\n\n".join(parts) + "\n", pictures


def shown(output: dict[str, Any], name: str, pictures: dict[str, bytes]) -> str:
    """One output as Markdown; a picture is added to the others under its name."""
    if output["output_type"] == "stream":
        return f"```text\n{''.join(output['text']).rstrip()}\n```"
    data = output["data"]
    if PICTURE in data:
        pictures[name] = base64.b64decode(data[PICTURE])
        return f"![What the code above draws]({name})"
    if "text/html" in data:
        return "".join(data["text/html"])
    return f"```text\n{''.join(data['text/plain']).rstrip()}\n```"


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages beside their notebooks."""
    folder = Path(config["docs_dir"]) / "tutorials"
    for notebook in sorted(folder.glob("*.ipynb")):
        text, pictures = page_of(notebook)
        page = f"tutorials/{notebook.stem}.md"
        files.append(File.generated(config, page, content=text))
        for name, picture in pictures.items():
            files.append(File.generated(config, f"tutorials/{name}", content=picture))
    return files
