"""The command line: what there is to run, running it, and what became of it."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pbgi.errors import PbgiError

if TYPE_CHECKING:
    from paper.experiments import Experiment
    from paper.results import Store
    from paper.specification import Run


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is 0 if all is well."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["figures"]:
        from paper import figures

        return figures.main(arguments[1:])
    if arguments[:1] == ["table"]:
        from paper import page

        return page.main(arguments[1:])
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except PbgiError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # `python -m paper list | head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m paper", description="The experiments of the paper.")
    commands = parser.add_subparsers(required=True, metavar="list | run | batch | table | figures")
    listing = commands.add_parser("list", help="experiments, their panels, and how much of them is done")
    listing.set_defaults(command=_list)
    run = commands.add_parser("run", help="execute the runs of experiments that have no result yet")
    run.set_defaults(command=_run)
    run.add_argument("--jobs", type=_count, default=1, help="runs at a time; one thread each (default: 1)")
    run.add_argument("--max-seconds", type=float, help="give up what is not finished after so many seconds")
    run.add_argument("--smoke", action="store_true", help="one seed, the smallest panels, two evaluations each")
    batch = commands.add_parser("batch", help="the same for closed-form policies, many runs at once on torch")
    batch.set_defaults(command=_batch)
    batch.add_argument("--device", default="cpu", help='where torch computes, e.g. "cuda" (default: cpu)')
    batch.add_argument("--jobs", type=_count, default=1, help="processes that make problems meanwhile (default: 1)")
    batch.add_argument("--max-seconds", type=float, help="give up what is not finished after so many seconds")
    batch.add_argument("--model", choices=("true", "fitted"), help="only runs whose model is the prior, or is fitted")
    for command in (listing, run, batch):
        _add_selection(command)
    commands.add_parser("table", help="docs/paper.md: the results beside the published numbers", add_help=False)
    commands.add_parser("figures", help="the paper's figures from the results", add_help=False)
    return parser


def _add_selection(command: argparse.ArgumentParser) -> None:
    command.add_argument("names", nargs="*", metavar="NAME", help="experiments; all if none is named")
    command.add_argument("--seeds", type=_count, help="the first so many seeds (default: as many as in the paper)")
    command.add_argument("--policy", nargs="+", metavar="NAME", help="these policies only, as the paper writes them")
    command.add_argument("--panel", nargs="+", metavar="TEXT", help="panels whose name contains one of these")
    command.add_argument("--variant", default="as_published", choices=("as_published", "as_described", "all"))
    command.add_argument("--smaller", action="store_true", help="a search of 64 d points and d climbs instead")
    command.add_argument("--results", type=Path, metavar="DIR", help="folder of the results")


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1; got {number}")
    return number


# What is selected -------------------------------------------------------------------------------------------------


def _experiments(options: argparse.Namespace) -> "list[Experiment]":
    from paper.experiments import EXPERIMENTS, experiment_named

    return [experiment_named(name) for name in dict.fromkeys(options.names or EXPERIMENTS)]


def _selected(experiment: "Experiment", options: argparse.Namespace) -> "Iterator[Run]":
    variant = None if options.variant == "all" else options.variant
    for run in experiment(options.seeds, variant, smaller=options.smaller):
        policy = run.curve.partition(",")[0]
        named = options.policy is None or policy in options.policy or run.curve in options.policy
        if named and (options.panel is None or any(text.lower() in run.panel.lower() for text in options.panel)):
            yield run


def _store(options: argparse.Namespace, smoke: bool = False) -> "Store":
    from paper.results import RESULTS, SMOKE, Store

    return Store(options.results or (SMOKE if smoke else RESULTS))


# Commands ---------------------------------------------------------------------------------------------------------


def _list(options: argparse.Namespace) -> int:
    from paper.progress import Durations, in_words

    store = _store(options)
    for experiment in _experiments(options):
        records = store.load([experiment.name])
        durations, finished = Durations(records), {record["key"] for record in records}
        print(f"{experiment.name}: {experiment.title}")
        panels: dict[str, list[Run]] = {}
        for run in _selected(experiment, options):
            panels.setdefault(run.panel, []).append(run)
        for panel, runs in panels.items():
            able = [run for run in runs if not run.lacks_botorch]
            left = [run for run in able if run.key not in finished]
            counts = f"{len(runs):5} runs {len(able) - len(left):5} done {len(runs) - len(able):5} lack BoTorch"
            print(f"  {panel:<52}{counts}   {in_words(durations.total(left)) if left else 'nothing'} left")
    return 0


def _run(options: argparse.Namespace) -> int:
    from paper.runner import Runner
    from paper.smoke import smoke
    from pbgi.errors import InvalidInputError

    runs = [run for experiment in _experiments(options) for run in _selected(experiment, options)]
    if not runs:
        raise InvalidInputError(f"the selection must hold a run; got {vars(options)}; see python -m paper list")
    runner = Runner(_store(options, options.smoke), n_jobs=options.jobs, max_seconds=options.max_seconds)
    return runner.run(smoke(runs) if options.smoke else runs).exit_status


def _batch(options: argparse.Namespace) -> int:
    from paper.batched.runner import run_batched
    from paper.specification import FittedModel, TrueModel

    runs = [run for experiment in _experiments(options) for run in _selected(experiment, options)]
    if options.model is not None:
        kind = {"true": TrueModel, "fitted": FittedModel}[options.model]
        runs = [run for run in runs if isinstance(run.specification.model, kind)]
    run_batched(runs, _store(options), device=options.device, n_jobs=options.jobs, max_seconds=options.max_seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
