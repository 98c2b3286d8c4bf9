"""The result in words: where a run stands, and what to try next, each sentence derived from its trials.

Every function looks for one thing and says nothing where it finds nothing. All is plain text.
"""

import math
from collections.abc import Iterator

from pbgi.display.wording import number, plural, text
from pbgi.history import Trial
from pbgi.parameter import Categorical
from pbgi.report.course import Course
from pbgi.report.regions import Region, regions_of
from pbgi.report.stopped import stopped_early, total_saved
from pbgi.report.subject import Subject
from pbgi.report.wording import amount, share

# A best value so close to the end of a parameter's range may lie beyond it.
AT_BOUND = 0.02
# A region is worth a word if it took so much of the money in so much more than its share of the trials ...
MOST_OF_THE_MONEY, TIMES_ITS_SHARE = 0.4, 1.5
# ... or so many failures, so much more often than elsewhere.
FEWEST_FAILURES, OFTEN, TIMES_AS_OFTEN = 3, 0.4, 3.0
# Nothing better in so much of the spending.
STALE = 0.5
# A gain that is less than this share of the spread of values is none to speak of.
HARDLY = 0.001
INTERVAL = 0.8  # how likely a value without noise is between the bounds of a recommendation
NEXT_TO_NOTHING = 0.05  # of a budget, to be left of it
FEWEST_TRIALS = 8


def standing(subject: Subject) -> list[str]:
    """What was found, what was spent and why it ended, in sentences."""
    return [*_found(subject), *_recommended(subject), *_spent(subject), *_ended(subject)]


def what_to_try(subject: Subject) -> list[str]:
    """What to try next."""
    if not subject.trials:
        return ["Start the search: there are no trials yet."]
    looks = (_no_value, _all_equal, _more_budget, _bounds, _failures, _dear_regions, _stale)
    said = [sentence for look in looks for sentence in look(subject)]
    return said or ["Nothing stands out: the best point is inside the space, and no region wastes money or fails."]


# Where it stands -----------------------------------------------------------------------------------------------------


def _found(subject: Subject) -> Iterator[str]:
    best = subject.best
    if best is None:
        yield "No trial has given a value yet."
        return
    word = _best_word(subject)
    after = Course.of(subject).until[best.number]
    when = f", found after spending {amount(after, subject.unit)}" if subject.spent > 0.0 else ""
    yield f"The {word} {text(subject.value_name)} is {number(best.value or 0.0, 6)}, from trial {best.number}{when}."


def _recommended(subject: Subject) -> Iterator[str]:
    chosen, best = subject.recommended, subject.best
    if chosen is None or best is None:
        return
    low, high = number(chosen.low), number(chosen.high)
    within = f"without noise is between {low} and {high}, with a probability of {share(INTERVAL)}"
    if chosen.trial.number != best.number:
        yield (
            f"Recommended is trial {chosen.trial.number}, whose {text(subject.value_name)} {within}, rather than trial "
            f"{best.number}: values are noisy, and the {_best_word(subject)} of many owes part of that to chance."
        )
    elif low != high:
        yield f"It is also the recommended trial; its {text(subject.value_name)} {within}."
    else:
        yield "It is also the recommended trial: values show no noise."


def _best_word(subject: Subject) -> str:
    return "lowest" if subject.direction == "minimize" else "highest"


def _spent(subject: Subject) -> Iterator[str]:
    states = [subject.state_of(trial) for trial in subject.trials]
    named = ("complete", "failed", "pruned", "stopped", "interrupted", "running")
    counts = [f"{states.count(s)} {s}" for s in named if s in states]
    yield f"{plural(len(states), 'trial')}: {', '.join(counts)}." if counts else "There are no trials yet."
    if subject.budget is not None:
        part = subject.spent / subject.budget
        held = f", {amount(subject.reserved, subject.unit)} held for running trials" if subject.reserved else ""
        of = f"{amount(subject.budget, subject.unit)} ({share(part)})"
        yield f"Spent {amount(subject.spent, subject.unit)} of {of}{held}."
    elif subject.spent > 0.0:
        yield f"Spent {amount(subject.spent, subject.unit)}; there is no budget."
    yield from _stopped(subject)
    if subject.spent > 0.0 and (lost := _lost(subject)) > 0.0:
        who = "Other trials without a value" if stopped_early(subject) else "Trials without a value"
        yield f"{who} cost {amount(lost, subject.unit)} of that ({share(lost / subject.spent)})."


def _ended(subject: Subject) -> Iterator[str]:
    reason = subject.stop_reason
    if reason is not None:
        yield f"Why it ended: {text(reason.message)}."
    elif subject.trials:
        yield "No rule has ended it: it goes on, or was interrupted."


def _stopped(subject: Subject) -> Iterator[str]:
    """What stopping trials early has saved."""
    early = stopped_early(subject)
    more = total_saved(subject)
    if early and more:
        paid = amount(math.fsum(trial.charged for trial in early), subject.unit)
        yield (
            f"{plural(len(early), 'trial')} stopped early cost {paid} of that; run to the end, they would have cost "
            f"about {amount(more, subject.unit)} more."
        )


def _lost(subject: Subject) -> float:
    early = stopped_early(subject)
    return math.fsum(trial.charged for trial in subject.trials if trial.value is None and trial not in early)


# What to try next ----------------------------------------------------------------------------------------------------


def _no_value(subject: Subject) -> Iterator[str]:
    messages = [trial.message for trial in subject.trials if trial.message]
    if subject.best is None and messages:
        yield f"Find out why trials fail before spending more; the last one said: {text(messages[-1], 200)}."
    elif subject.best is None and subject.trials and not any(t.reserved for t in subject.trials):
        yield "Find out why no trial gives a value before spending more."


def _all_equal(subject: Subject) -> Iterator[str]:
    if subject.is_flat:
        n = len(subject.completed)
        yield f"All {n} values are equal: either the parameters do not matter, or the program does not use them."


def _more_budget(subject: Subject) -> Iterator[str]:
    found, best = subject.outlook, subject.best
    if found is None or best is None or best.value is None:
        return
    left = subject.spendable
    extra = left if left >= found.extra[1] else float(found.extra[-1])
    reached = float(found.expected[min(int(sum(found.extra < extra * (1 - 1e-9))), len(found.extra) - 1)])
    values = [trial.value or 0.0 for trial in subject.completed]
    gain, spread = abs(reached - best.value), max(values) - min(values)
    whose = (
        f"the {amount(extra, subject.unit)} that is left" if extra == left else f"{amount(extra, subject.unit)} more"
    )
    if gain <= HARDLY * spread:
        yield f"The model expects next to nothing of spending {whose}."
    else:
        yield (
            f"The model expects {whose} to bring the best {text(subject.value_name)} from {number(best.value)} to "
            f"about {number(reached)}{_at_this_rate(subject, gain, extra)}."
        )


def _at_this_rate(subject: Subject, gain: float, extra: float) -> str:
    """Why it ended all the same, where nothing was worth its price."""
    reason, rate = subject.stop_reason, subject.exchange_rate
    if reason is None or reason.rule != "GittinsStop" or rate is None or gain >= rate * extra:
        return ""
    return f", a gain below the {number(rate * extra)} that it must bring at the exchange rate"


def _bounds(subject: Subject) -> Iterator[str]:
    for name, parameter in subject.parameters.items():
        inside, units = subject.coordinates(name, [subject.best] if subject.best is not None else [])
        # Of a few levels the outermost are likely to be the best anyhow.
        if not inside or isinstance(parameter, Categorical) or parameter.n_levels < FEWEST_TRIALS:
            continue
        margin = max(AT_BOUND, 0.6 / parameter.n_levels)
        side = "lower" if units[0] <= margin else "upper" if units[0] >= 1.0 - margin else None
        if side is not None:
            bound = parameter.low if side == "lower" else parameter.high
            yield (
                f"The best trial has {text(name)} = {text(inside[0].params[name])}, at the {side} bound, "
                f"{number(float(bound))}: if other values make sense, widen the range."
            )


def _failures(subject: Subject) -> Iterator[str]:
    failed = [t for t in subject.trials if subject.state_of(t) == "failed"]
    if len(failed) < FEWEST_FAILURES:
        return
    told = False
    for name in subject.parameters:
        for region in regions_of(subject, name):
            inside, outside = _failure_rates(subject, region, failed)
            n = sum(subject.state_of(t) == "failed" for t in region.trials)
            if n >= max(FEWEST_FAILURES, len(failed) / 2) and inside > max(OFTEN, TIMES_AS_OFTEN * outside):
                told = True
                yield (
                    f"{n} of {len(failed)} failures have {text(name)} at {region.words}, where {share(inside)} of "
                    f"trials fail: leave that out, or mend it."
                )
    if not told and len(failed) * 4 > len(subject.trials):
        part = share(len(failed) / len(subject.trials))
        yield f"{part} of trials failed, all over the space: see their messages below."


def _failure_rates(subject: Subject, region: Region, failed: list[Trial]) -> tuple[float, float]:
    n = sum(subject.state_of(trial) == "failed" for trial in region.trials)
    others = len(subject.trials) - len(region.trials)
    return n / max(len(region.trials), 1), (len(failed) - n) / others if others else 1.0


def _dear_regions(subject: Subject) -> Iterator[str]:
    """Regions that took much of the money, more than their share of the trials, and not the best."""
    if len(subject.completed) < FEWEST_TRIALS or subject.spent <= 0.0 or subject.best is None:
        return
    for name in subject.parameters:
        for region in regions_of(subject, name):
            part = region.paid / (subject.spent + subject.reserved)
            fair = len(region.trials) / len(subject.trials)
            values = [subject.sign * t.value for t in region.trials if t.value is not None]
            if part < MOST_OF_THE_MONEY or part < TIMES_ITS_SHARE * fair or subject.best in region.trials or not values:
                continue
            best_there = subject.sign * max(values)
            yield (
                f"{share(part)} of the money went to {plural(len(region.trials), 'trial')} with {text(name)} at "
                f"{region.words}, where the best is {number(best_there)}: consider leaving that out."
            )


def _stale(subject: Subject) -> Iterator[str]:
    if subject.is_flat or subject.best is None or subject.spent <= 0.0 or len(subject.completed) < FEWEST_TRIALS:
        return
    since = subject.spent - Course.of(subject).until[subject.best.number]
    if since > STALE * subject.spent:
        # While there is more to spend, that may still change.
        done = subject.budget is not None and (subject.remaining or 0.0) < NEXT_TO_NOTHING * subject.budget
        so = ": a smaller budget would have done, or the space needs other parameters" if done else ""
        yield f"The last {share(since / subject.spent)} of the spending found nothing better{so}."
