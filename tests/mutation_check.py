"""Changes each message and each exit code of the command line once, and looks whether a test notices.

    python tests/mutation_check.py                       all files, all tests of the command line; about an hour
    python tests/mutation_check.py storage.py tune.py    only these files

A copy of the checkout is made in which every message goes through a function that can change it. A first run of the
tests, with nothing changed, notes which tests come by which message, also in the processes they start. Then each is
changed once, and only those tests are run, the quick ones first, until one fails. The exit code is 0 if there is none
that nobody notices.
"""

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
CLI = ROOT / "pbgi" / "cli"
FILES = [str(path.relative_to(CLI)) for path in sorted(CLI.rglob("*.py")) if path.name != "__init__.py"]
TESTS = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests" / "cli").glob("test_*.py"))]
TIMES = ("-vv", "--durations=0", "--durations-min=0")
NOT_COPIED = (".*", "__pycache__", "site", "demo-output", "shared")
SWITCH = '''"""Made by tests/mutation_check.py."""
import os
def text(number, said):
    return "this was changed" if _reached(number) else said
def code(number, value):
    return value + 64 if _reached(number) else value
def _reached(number):
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    if test and "MUTANT_NOTES" in os.environ:
        # A file per process: a test may limit how large files get.
        with open(f"{os.environ['MUTANT_NOTES']}{os.getpid()}", "a") as file:
            file.write(f"{number}\\t{test}\\n")
    return os.environ.get("MUTANT") == str(number)
'''


@dataclass(frozen=True)
class Mutant:
    """One message, or one exit code, where it is written; made at import, it may reach any test."""

    where: str
    said: str
    at_import: bool


class Switches(ast.NodeTransformer):
    """Puts every message and exit code of a module through a switch."""

    def __init__(self, name: str, first: int) -> None:
        self._name, self._first = name, first
        self._in_codes, self._in_function = False, False
        self.mutants: list[Mutant] = []

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Documentation stays."""
        return node if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Annotations stay."""
        node.value = None if node.value is None else self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Annotations stay here too."""
        before, self._in_function = self._in_function, True
        node.body = [self.visit(statement) for statement in node.body]
        self._in_function = before
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """The exit codes are numbers of a class."""
        self._in_codes = node.name == "ExitCode"
        node.body = [self.visit(statement) for statement in node.body]
        self._in_codes = False
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """A message with values in it."""
        written = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
        return self._switch("text", node) if written.strip().count(" ") >= 2 else node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """A plain message, or an exit code."""
        if isinstance(node.value, str) and node.value.strip().count(" ") >= 2:
            return self._switch("text", node)
        if type(node.value) is int and (self._in_codes or node.value in (128, 130)):
            return self._switch("code", node)
        return node

    def _switch(self, kind: str, node: ast.expr) -> ast.AST:
        number = self._first + len(self.mutants)
        where = f"pbgi/cli/{self._name}:{node.lineno}"
        self.mutants.append(Mutant(where, ast.unparse(node), at_import=not self._in_function))
        function = ast.parse(f"__import__('pbgi_mutants').{kind}", mode="eval").body
        return ast.copy_location(ast.Call(function, [ast.Constant(number), node], []), node)


def prepare(copy: Path, names: list[str]) -> list[Mutant]:
    """A copy of the checkout with switches in these files."""
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*NOT_COPIED))
    (copy / "pbgi_mutants.py").write_text(SWITCH)
    mutants: list[Mutant] = []
    for name in names:
        path = copy / "pbgi" / "cli" / name
        switches = Switches(name, len(mutants))
        tree = ast.fix_missing_locations(switches.visit(ast.parse(path.read_text(encoding="utf-8"))))
        path.write_text(ast.unparse(tree), encoding="utf-8")
        mutants += switches.mutants
    return mutants


def run(copy: Path, tests: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """What pytest says."""
    line = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", *TIMES, *tests]
    environment = os.environ | {"PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"} | variables
    done = subprocess.run(line, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    if "MUTANT" not in variables and done.returncode:
        sys.exit(f"the tests fail with nothing changed:\n{done.stdout[-3000:]}")
    return done


def quickest_first(said: str) -> dict[str, float]:
    """The seconds of every test, from what pytest says at its end."""
    seconds: dict[str, float] = defaultdict(float)
    for taken, test in re.findall(r"^(\d+\.\d+)s (?:setup|call|teardown) +(.+)$", said, re.MULTILINE):
        seconds[test] += float(taken)
    return dict(sorted(seconds.items(), key=lambda item: item[1]))


def covering(notes: Path, order: list[str]) -> dict[int, list[str]]:
    """Which tests come by which message, in this order."""
    found: dict[int, set[str]] = defaultdict(set)
    for line in (line for path in notes.parent.glob(f"{notes.name}*") for line in path.read_text().splitlines()):
        number, _, test = line.partition("\t")
        found[int(number)].add(test)
    return {number: [test for test in order if test in tests] for number, tests in found.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="files of pbgi/cli; by default all of them")
    names = parser.parse_args().files or FILES
    survivors: list[Mutant] = []
    with tempfile.TemporaryDirectory() as folder:
        copy, notes = Path(folder) / "copy", Path(folder) / "notes"
        mutants = prepare(copy, names)
        everything = list(quickest_first(run(copy, list(TESTS), MUTANT_NOTES=str(notes)).stdout))
        reached = covering(notes, everything)
        for number, mutant in enumerate(mutants):
            tests = everything if mutant.at_import else reached.get(number, [])
            noticed = bool(tests) and run(copy, tests, MUTANT=str(number)).returncode == 1
            verdict = "noticed " if noticed else "MISSED  " if tests else "NO TEST "
            print(f"{verdict}{mutant.where}  {mutant.said}"[:200], flush=True)
            survivors += [] if noticed else [mutant]
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} changes are noticed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
