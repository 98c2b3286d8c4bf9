"""Names of the figures that pages point at, and what they show: the list itself needs matplotlib, a page does not."""

HARD_FOR_EIPC, HARD_FOR_EI = "hard_for_eipc", "hard_for_ei"
BAYESIAN_REGRET, SYNTHETIC, EMPIRICAL = "bayesian_regret", "synthetic", "empirical"
ROBOT_PUSHING = "robot_pushing"
KERNELS, COST_SCALE, DECAY, LOG_SCALING, TIMING_FIGURE = "kernels", "cost_scale", "decay", "log_scaling", "timing"

SHOWN = {
    HARD_FOR_EIPC: "Prior, cost, and regret of LogEIPC and PBGI with both models",
    HARD_FOR_EI: "Prior, cost, and regret of LogEI and PBGI with both models",
    BAYESIAN_REGRET: "Regret on draws from a prior in 8, 16 and 32 dimensions",
    SYNTHETIC: "Regret on Ackley, Levy and Rosenbrock in 16 dimensions",
    EMPIRICAL: "Best values on Pest Control, Lunar Lander and Robot Pushing",
    ROBOT_PUSHING: "Best values on Robot Pushing with known and with unknown cost",
    KERNELS: "Regret on draws from priors with other kernels",
    COST_SCALE: "Regret of PBGI with five cost scales, and of PBGI-D",
    DECAY: "Regret and rate of PBGI-D from two starts and with three decays",
    LOG_SCALING: "Regret of improvement with and without its logarithm and its stable digits",
    TIMING_FIGURE: "Processor seconds per suggestion on Ackley",
}
