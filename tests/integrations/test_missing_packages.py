"""What a user is told who has pbgi alone: what is missing, and what installs it."""

import subprocess
import sys

SAYS = {
    "import pbgi.botorch": "pbgi.botorch needs BoTorch: pip install botorch",
    "import pbgi.botorch.acquisition": "pbgi.botorch needs BoTorch: pip install botorch",
    "import pbgi.integrations.ax": "pbgi.integrations.ax needs Ax: pip install ax-platform",
    "import pbgi.integrations.sklearn": "pbgi.integrations.sklearn needs scikit-learn: pip install scikit-learn",
    "import pbgi.integrations.ray": "pbgi.integrations.ray needs Ray Tune: pip install 'ray[tune]'",
    "from pbgi.report import write_report": "pbgi.report.write_report draws with Plotly: pip install plotly",
}
# None in `sys.modules` is how Python notes that there is no such module.
ALONE = """
import sys
sys.modules.update(dict.fromkeys(["torch", "botorch", "ax", "sklearn", "ray", "plotly"]))
import pbgi
for statement in sys.argv[1:]:
    try:
        exec(statement)
    except pbgi.MissingPackageError as error:
        print(error)
"""


def test_what_is_missing_is_named_with_what_installs_it():
    done = subprocess.run([sys.executable, "-c", ALONE, *SAYS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == list(SAYS.values())
