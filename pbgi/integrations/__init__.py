"""pbgi at home in other libraries: each module imports the heart and its own library only.

| module | library | extra |
|---|---|---|
| `pbgi.integrations.optuna` | Optuna: a sampler, and callbacks that stop a study | none |
| `pbgi.integrations.ax` | Ax: the index in a generation strategy | `ax` |
"""
