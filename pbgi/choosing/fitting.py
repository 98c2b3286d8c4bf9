"""The models of a run, fitted to its trials: when they are fitted anew, and what is noted of them.

Hyperparameters, and how many trials they were fitted to, are in the records of trials. So a fit starts where the last
one ended, whichever process made it, and a fit that would change little is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from pbgi.arrays import Floats
from pbgi.choosing.partial import observe_partial
from pbgi.choosing.state import RunState
from pbgi.constraints.constraint import margins
from pbgi.constraints.feasibility import Feasibility, OutcomeModel, one_of_each
from pbgi.cost import CostModel, LearnedCost, UniformCost, Unseen
from pbgi.gp.algebra import rounded
from pbgi.gp.config import GPConfig
from pbgi.gp.warp import IDENTITY, WARP_QUANTUM, Warp, fit_warp
from pbgi.history import Trial
from pbgi.model import MOST_VALUES, Model, fit_model, last_hyperparameters, last_number, seen_by_model, to_note
from pbgi.notes import (
    COST_MODEL,
    COST_MODEL_SIZE,
    VALUE_MODEL,
    VALUE_MODEL_SIZE,
    Note,
    outcome_model,
    outcome_model_size,
)
from pbgi.stages.instalments import Instalments

# The model is fitted anew only when there are this many times as many values as at its last fit, or something better
# than it had seen: runs end no worse (`benchmarks/quality_variants.py`), and a fit takes a quarter of a suggestion's
# time, at n = 1000 six sevenths. One that does not warp values is fitted as published ones are: always, up to so many.
VALUE_REFIT, MANY_VALUES = 1.08, 250
# How costs vary is soon known: fitting it at every step would take a fifth of the time of a suggestion.
COST_REFIT = 1.1


@dataclass(frozen=True, eq=False)
class FittedValues:
    """What is believed of values; larger is better.

    Attributes:
        seen: Trials that the model has seen.
        X: (n, d) Their points.
        warped: (n,) Their values as the model has seen them.
        warp: How values became that.
        model: What it makes of them.
        notes: What the next fit wants to know.
        instalments: What the stages of a trial cost and say, where trials may stop early and enough is known of it.
    """

    seen: tuple[Trial, ...]
    X: Floats
    warped: Floats
    warp: Warp
    model: Model
    notes: Mapping[str, Note]
    instalments: Instalments | None = None


def fit_values(state: RunState, *, refit: bool = True) -> FittedValues:
    """Fit the model of values to completed trials, and to what others have said on their way.

    Without a refit hyperparameters that are known stay as they are.
    """
    completed = state.completed
    kind, start = state.settings.model, last_hyperparameters(state.trials, VALUE_MODEL, state.space.dimension)
    n_fitted = int(last_number(state.trials, VALUE_MODEL_SIZE, 0.0))
    warps = isinstance(kind, GPConfig) and kind.outputs == "warped"
    always = not warps and len(completed) < MANY_VALUES
    grown = always or refit_is_due(larger_is_better(completed, state.sign), n_fitted)
    due = start is None or (refit and grown)
    if not due and isinstance(kind, GPConfig) and kind.hyperparameters is None:
        kind = replace(kind, hyperparameters=start)
    seen = seen_by_model(completed, state.sign)
    X, values = state.points(seen), larger_is_better(seen, state.sign)
    partial = state.partial if isinstance(kind, GPConfig) else ()
    lasts = [state.sign * trial.reports[-1].value for trial in partial]
    warp = fit_warp(np.append(values, lasts)) if warps else IDENTITY
    # Rounded, so that what the model sees of a * y + b is what it sees of y, bit for bit.
    warped = rounded(warp.to_warped(values), WARP_QUANTUM) if warps else values
    told, spread, instalments = (X, warped), None, None
    if state.settings.steps is not None and isinstance(kind, GPConfig):
        foretold = observe_partial(state, warp, start)
        instalments = foretold.instalments
        if len(foretold.X):
            told = np.concatenate([X, foretold.X]), np.concatenate([warped, foretold.warped])
            spread = np.pad(foretold.spread, (len(X), 0))
    model = fit_model(kind, *told, categorical=state.space.categorical, start=start, spread=spread)
    found = to_note(model.hyperparameters)
    size = float(len(completed) if due else n_fitted)
    notes: dict[str, Note] = {} if found is None else {VALUE_MODEL.name: found, VALUE_MODEL_SIZE.name: size}
    return FittedValues(seen, X, warped, warp, model, notes, instalments)


def refit_is_due(values: Floats, n_fitted: int) -> bool:
    """Whether to fit a model of all these values, larger is better, when the last fit had the first `n_fitted`."""
    if len(values) >= VALUE_REFIT * n_fitted:
        return True
    return float(values[n_fitted:].max(initial=-np.inf)) > float(values[:n_fitted].max())


def larger_is_better(completed: tuple[Trial, ...], sign: float) -> Floats:
    """Values of completed trials, times the sign of the direction."""
    return np.array([sign * (t.value or 0.0) for t in completed])


def fit_costs(state: RunState) -> CostModel:
    """Fit the model of costs to what was paid."""
    paid = state.paid
    kind = state.settings.cost or (LearnedCost() if paid else UniformCost())
    start = last_hyperparameters(state.trials, COST_MODEL, state.space.dimension)
    due = len(paid) >= COST_REFIT * last_number(state.trials, COST_MODEL_SIZE, 0.0)
    config = GPConfig() if due else GPConfig(hyperparameters=start)
    seen = paid[-MOST_VALUES:]
    costs = np.array(state.whole_costs[-MOST_VALUES:], float)
    return kind.fit(state.space, state.points(seen), costs, config, start)


def unseen_categories(state: RunState, cost: CostModel) -> Unseen | None:
    """How much categories that nobody has paid for may cost; None where the user says what categories cost."""
    kind = state.settings.cost or LearnedCost()
    budget, left = state.settings.budget, state.remaining
    if not isinstance(kind, LearnedCost) or kind.known_factor is not None or not state.paid or not budget:
        return None
    return Unseen.of(state.points(state.paid), state.space.categorical, cost, (left or 0.0) / budget)


def cost_notes(state: RunState, cost: CostModel) -> dict[str, Note]:
    """The hyperparameters of the cost, and how many costs they were fitted to."""
    found = to_note(cost.hyperparameters)
    if found is None:
        return {}
    fitted = cost.hyperparameters != last_hyperparameters(state.trials, COST_MODEL, state.space.dimension)
    size = float(len(state.paid)) if fitted else last_number(state.trials, COST_MODEL_SIZE, 0.0)
    return {COST_MODEL.name: found, COST_MODEL_SIZE.name: size}


@dataclass(frozen=True, eq=False)
class FittedOutcomes:
    """What is believed of the outcomes that conditions are about.

    Attributes:
        feasibility: How likely points are to keep the conditions; None while no outcome is known.
        notes: What the next fit wants to know.
    """

    feasibility: Feasibility | None
    notes: Mapping[str, Note]


def fit_outcomes(state: RunState) -> FittedOutcomes:
    """Fit a model to each outcome that is told, also by failed trials; outcomes that always move together are one."""
    constraints = state.settings.constraints
    told = tuple(trial for trial in state.trials if trial.constraints)[-MOST_VALUES:] if constraints else ()
    if not constraints or not told:
        return FittedOutcomes(None, {})
    known, notes = margins(constraints, told), dict[str, Note]()
    models = []
    for name, needed in one_of_each(known).items():
        there = ~np.isnan(known[name])
        if there.any():
            trials = tuple(trial for trial, is_there in zip(told, there, strict=True) if is_there)
            model, found = _fit_outcome(state, name, trials, known[name][there], needed)
            models.append(model)
            notes |= found
    return FittedOutcomes(Feasibility(tuple(models)) if models else None, notes)


def _fit_outcome(
    state: RunState, name: str, trials: tuple[Trial, ...], margin: Floats, needed: float
) -> tuple[OutcomeModel, Mapping[str, Note]]:
    """The model of the margin of one outcome, which must be at least what is needed."""
    note, size_note = outcome_model(name), outcome_model_size(name)
    start = last_hyperparameters(state.trials, note, state.space.dimension)
    n_fitted, n = last_number(state.trials, size_note, 0.0), len(margin)
    due = start is None or n < MANY_VALUES or n >= VALUE_REFIT * n_fitted
    config = GPConfig() if due else GPConfig(hyperparameters=start)
    warp = fit_warp(margin)
    X, warped = state.points(trials), rounded(warp.to_warped(margin), WARP_QUANTUM)
    model = fit_model(config, X, warped, categorical=state.space.categorical, start=start)
    limit = float(warp.to_warped(np.array([needed]))[0])
    found = to_note(model.hyperparameters)
    notes: dict[str, Note] = {} if found is None else {note.name: found, size_note.name: float(n) if due else n_fitted}
    return OutcomeModel(model, limit), notes
