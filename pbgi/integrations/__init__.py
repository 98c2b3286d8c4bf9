"""pbgi at home in other libraries: each module imports the heart and its own library only.

| module | library | extra |
|---|---|---|
| `pbgi.integrations.optuna` | Optuna: a sampler, and callbacks that stop a study | none |
| `pbgi.integrations.sklearn` | scikit-learn: a search like RandomizedSearchCV | `sklearn` |
| `pbgi.integrations.ray` | Ray Tune: a searcher, and a stopper for its budget | `ray` |
| `pbgi.integrations.ax` | Ax: the index in a generation strategy | `ax` |
"""
