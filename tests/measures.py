"""How a tree of this project measures: lengths of files and functions, comments, type hints, tests.

    python tests/measures.py                    this tree
    python tests/measures.py OTHER . --names before now        several, side by side, as a table in Markdown

A line of code is one with a token that is neither a comment nor part of a docstring. A function has the lines of code
of its body; functions inside it count too, and once more by themselves. A test file is named after its module if it is
`test_<module>.py` in the folder of the same name as the module's, where the room may stand in front
(`test_study_spaces.py`) and an aspect behind (`test_running_budget.py`).
"""

import argparse
import ast
import io
import statistics
import tokenize
from collections.abc import Iterator
from pathlib import Path

NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Where numbers are made: the reader needs the reason, not only the formula.
NUMERICAL = ("kernel", "fit", "gp_fit", "grids", "mixed", "climb", "quasi_newton")


class Module:
    """A file of Python, and which of its lines are code and comments."""

    def __init__(self, path: Path) -> None:
        self.path, text = path, path.read_text(encoding="utf-8")
        self.n_lines, self.tree = len(text.splitlines()), ast.parse(text)
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        documented = {line for first, last in self._docstrings() for line in range(first, last + 1)}
        self.code = {
            line for t in tokens if t.type not in NO_CODE for line in range(t.start[0], t.end[0] + 1)
        } - documented
        self.comments = {t.start[0] for t in tokens if t.type == tokenize.COMMENT and not _is_for_tools(t.string)}

    def _docstrings(self) -> Iterator[tuple[int, int]]:
        for node in ast.walk(self.tree):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                yield node.lineno, node.end_lineno or node.lineno

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """All functions and methods."""
        return (node for node in ast.walk(self.tree) if isinstance(node, FUNCTIONS))

    def function_lengths(self) -> list[int]:
        """Lines of code in the bodies of its functions."""
        bodies = [(f.body[0].lineno, f.end_lineno or f.lineno) for f in self.functions()]
        return [sum(first <= line <= last for line in self.code) for first, last in bodies]


def _is_for_tools(comment: str) -> bool:
    """Comments that say nothing to people: rulers, and what linters and type checkers are told."""
    return comment.startswith(("# noqa", "# type:", "# ---", "#!")) or comment.endswith("-----")


def _is_typed(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    named = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    arguments = [a for a in named if a.arg not in ("self", "cls")] + [
        a for a in (function.args.vararg, function.args.kwarg) if a is not None
    ]
    returns = function.returns is not None or function.name == "__init__"
    return returns and all(argument.annotation is not None for argument in arguments)


def _names(root: Path, folder: Path) -> set[str]:
    """What test files in a folder of `tests/` may be called: the modules of its twin in the tree."""
    inside = folder.relative_to(root / "tests")
    if inside.parts[:1] == ("paper",):
        homes = [root / inside]
    elif inside.parts:
        homes = [root / "pbgi" / inside, *(p for p in (root / "pbgi" / inside).glob("*") if p.is_dir())]
    else:
        homes = [root / "pbgi", root / "benchmarks", root / "examples"]
    found = {
        (home.name, path.stem.strip("_")) for home in homes for path in home.glob("*.py") if path.stem != "__init__"
    }
    return {name for _, name in found} | {f"{home}_{name}" for home, name in found}


def unnamed(root: Path) -> list[str]:
    """Test files that no module has given its name."""
    tests = sorted((root / "tests").rglob("test_*.py"))
    stems = [(path, path.stem.removeprefix("test_")) for path in tests]
    return [
        str(path.relative_to(root))
        for path, stem in stems
        if not any(stem == name or stem.startswith(f"{name}_") for name in _names(root, path.parent))
    ]


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "none"


def _quantile(numbers: list[int], share: float) -> int:
    return sorted(numbers)[min(int(share * len(numbers)), len(numbers) - 1)]


def measures(root: Path) -> dict[str, str]:
    """The table of one tree."""
    modules = [Module(path) for path in sorted((root / "pbgi").rglob("*.py"))]
    tests = [Module(path) for path in sorted((root / "tests").rglob("*.py"))]
    test_files = [m.path for m in tests if m.path.name.startswith("test_")]
    lengths = [m.n_lines for m in modules if m.path.name != "__init__.py"]
    functions = [n for m in modules for n in m.function_lengths()]
    typed = [_is_typed(function) for m in modules for function in m.functions()]
    numerical = [m for m in modules if m.path.stem in NUMERICAL]
    code, test_code = (sum(len(m.code) for m in part) for part in (modules, tests))
    return {
        "files at the top level of `pbgi/`": str(len(list((root / "pbgi").glob("*.py")))),
        "files of the command line": str(len(list((root / "pbgi" / "cli").rglob("*.py")))),
        "lines per file, median": f"{statistics.median(lengths):.0f}",
        "longest file": str(max(lengths)),
        "files of at most 400 lines": _share(sum(n <= 400 for n in lengths), len(lengths)),
        "lines of code per function, median": f"{statistics.median(functions):.0f}",
        "lines of code per function, 90 %": str(_quantile(functions, 0.9)),
        "functions of at most 40 lines": _share(sum(n <= 40 for n in functions), len(functions)),
        "comments per 100 lines of code": _per_100(modules),
        "the same in the numerical files": _per_100(numerical),
        "functions with complete type hints": _share(sum(typed), len(typed)),
        "lines of tests per line of code": f"{test_code / code:.2f}",
        "test files named after a module": _share(len(test_files) - len(unnamed(root)), len(test_files)),
    }


def _per_100(modules: list[Module]) -> str:
    code = sum(len(m.code) for m in modules)
    return f"{100 * sum(len(m.comments) for m in modules) / code:.1f}" if code else "none"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trees", type=Path, nargs="*", default=[Path(__file__).parents[1]])
    parser.add_argument("--names", nargs="*", help="what to call them; by default their folders")
    options = parser.parse_args()
    names = options.names or [tree.resolve().name for tree in options.trees]
    columns = [measures(tree) for tree in options.trees]
    print("| measure | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for measure in columns[0]:
        print(f"| {measure} | " + " | ".join(column[measure] for column in columns) + " |")


if __name__ == "__main__":
    main()
