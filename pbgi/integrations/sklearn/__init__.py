"""scikit-learn: a search over hyperparameters that spends seconds of fitting and scoring where they pay.

    GittinsSearchCV    used like RandomizedSearchCV, with a budget

| file | subject |
|---|---|
| `search.py` | the class |
| `evaluation.py` | candidates cross-validated, stage by stage, and the optimizer told |
| `resources.py` | stages: how many samples, or trees, a candidate gets at each |
| `spaces.py` | what users write as a search space, as the engine sees it, and the way back |
| `folds.py` | all candidates on the same folds, and a part of each to train with |
| `rows.py` | a row of `cv_results_` per candidate, and its rank |
| `failures.py` | candidates none of whose fits succeeded: recognized, warned of, and put into `cv_results_` |
"""

from pbgi.errors import MissingPackageError

try:
    import sklearn  # noqa: F401 (is it there?)
except ImportError as error:
    raise MissingPackageError("pbgi.integrations.sklearn needs scikit-learn: pip install scikit-learn") from error

from pbgi.integrations.sklearn.search import GittinsSearchCV

__all__ = ["GittinsSearchCV"]
