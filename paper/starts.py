"""The points that all runs of a seed begin with: those of the published runs.

The authors drew them as one point of a scrambled Sobol sequence in n d dimensions, cut into n points of d: uniformly at
random in effect. Its scrambling is torch's, so torch draws it here too, from a generator of its own. With the same
starts, curves differ from the published ones by what happens after them only. (Where the objective is drawn at random
the published starts depend on how it was drawn; there these are as good as any.)
"""

from functools import lru_cache

import numpy as np
import torch
from torch.quasirandom import SobolEngine

from pbgi.arrays import Floats


@lru_cache(maxsize=8)
def published_start(seed: int, n: int, dimension: int) -> Floats:
    """The start (n, d) of this seed, in the unit cube."""
    engine = SobolEngine(n * dimension, scramble=True, seed=seed)  # type: ignore[no-untyped-call]
    points: Floats = engine.draw(1, dtype=torch.float64).numpy().reshape(n, dimension).astype(np.float64)
    points.setflags(write=False)
    return points
