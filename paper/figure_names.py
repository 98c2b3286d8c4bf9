"""Names of the figures that pages point at: the list itself needs matplotlib, a page does not."""

HARD_FOR_EIPC, HARD_FOR_EI = "hard_for_eipc", "hard_for_ei"
BAYESIAN_REGRET, SYNTHETIC, EMPIRICAL = "bayesian_regret", "synthetic", "empirical"
KERNELS, COST_SCALE, DECAY, LOG_SCALING, TIMING_FIGURE = "kernels", "cost_scale", "decay", "log_scaling", "timing"
