"""The paper's experiments, run with `pbgi`: what was run, a runner that can be interrupted, figures and tables.

    python -m paper list
    python -m paper run synthetic --seeds 16 --jobs 2
    python -m paper table
    python -m paper figures

Not part of the installed package: run it from the root of the repository.
"""
