"""Workers that take their time and sometimes fail, and a program that is killed half-way and goes on.

Each job "trains" for a while: larger models take longer, and those that do not fit in memory fail. A few fail for no
reason at all. Jobs run side by side; the next one starts the moment one ends. After each the state is written to a
file. Half-way the program pretends to be killed: jobs that are under way are lost. It then starts again from the file.

    python examples/parallel_with_failures.py --workers 4 --budget 3
    python examples/parallel_with_failures.py --out demo-output       with a picture; needs Matplotlib
"""

import argparse
import random
import tempfile
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

import pbgi

SPACE = {
    "size": pbgi.Integer(1, 64, log=True),
    "rate": pbgi.Float(1e-4, 1.0, log=True),
    "schedule": pbgi.Categorical(["constant", "cosine"]),
}
MEMORY = 40  # the largest size that fits


class Killed(Exception):  # noqa: N818 (an event of the story, not an error)
    """The program is gone."""


def train(params: dict, luck: float) -> tuple[float | None, float, str | None]:
    """One job: its loss or None, the seconds it took, and what went wrong."""
    start = time.perf_counter()
    time.sleep(0.01 + 0.004 * params["size"])
    loss = 1.0 / params["size"] + abs(params["rate"] - 0.03) ** 0.5 + 0.1 * (params["schedule"] == "constant")
    if params["size"] > MEMORY:
        return None, time.perf_counter() - start, "out of memory"
    if luck < 0.1:
        return None, time.perf_counter() - start, "machine lost"
    return loss, time.perf_counter() - start, None


class Lab:
    """The workers, what they are doing, and the file the state is kept in."""

    def __init__(self, optimizer: pbgi.Optimizer, path: Path, n_workers: int, luck: random.Random) -> None:
        self.optimizer, self.path, self.n_workers, self.luck = optimizer, path, n_workers, luck
        self.ends: dict[int, float] = {}  # by trial, on the clock: for the picture

    def run(self, killed_at: float = float("inf")) -> pbgi.StopReason:
        """Work until the optimizer says stop, or the program is killed."""
        with ThreadPoolExecutor(self.n_workers) as pool:
            # Whatever was running when the state was written is run again; its cost is still reserved.
            lost = [trial for trial in self.optimizer.trials if trial.state is pbgi.TrialState.RUNNING]
            running = {self.submit(pool, trial): trial for trial in lost}
            while True:
                reason = None
                while len(running) < self.n_workers and (reason := self.optimizer.should_stop()) is None:
                    trial = self.optimizer.ask()
                    running[self.submit(pool, trial)] = trial
                if not running:
                    return reason
                self.save()
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    self.finish(running.pop(future), *future.result())
                self.save()
                if self.optimizer.spent >= killed_at:
                    raise Killed

    def submit(self, pool: ThreadPoolExecutor, trial: pbgi.Trial) -> Future:
        """Give a trial to a worker."""
        return pool.submit(train, dict(trial.params), self.luck.random())

    def finish(self, trial: pbgi.Trial, loss: float | None, seconds: float, trouble: str | None) -> None:
        """Tell the optimizer, and the reader, how a trial ended."""
        self.ends[trial.number] = time.perf_counter()
        if loss is None:
            self.optimizer.fail(trial, cost=seconds, message=trouble)
            outcome = f"failed: {trouble}"
        else:
            self.optimizer.tell(trial, loss, cost=seconds)
            outcome = f"loss {loss:.4f}"
        optimizer, size = self.optimizer, trial.params["size"]
        print(
            f"  trial {trial.number:2d}, size {size:2d}: {outcome} ({optimizer.spent:.2f} s of {optimizer.budget:g} s)"
        )

    def save(self) -> None:
        """Write beside the file and rename: a crash while writing leaves the old state."""
        new = self.path.with_suffix(".new")
        new.write_text(self.optimizer.to_json())
        new.replace(self.path)


def tell_the_end(optimizer: pbgi.Optimizer, reason: pbgi.StopReason) -> None:
    failed = [trial for trial in optimizer.trials if trial.state is pbgi.TrialState.FAILED]
    wasted = sum(trial.charged for trial in failed)
    print(f"\nStopped: {reason}.")
    print(f"{len(optimizer.trials)} trials, {len(failed)} of them failed.")
    print(f"{optimizer.spent:.2f} s of work were spent, {wasted:.2f} s of it on failures.")
    if optimizer.best is None:
        print("No trial succeeded.")
    else:
        print(f"Best: loss {optimizer.best.value:.4f} with {dict(optimizer.best.params)}")


def draw(optimizer: pbgi.Optimizer, ends: dict[int, float], killed: float | None, path: Path) -> None:
    """Who worked when: a bar per trial, in the first row that is free."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from pbgi.report import palette

    with mpl.rc_context(palette.MATPLOTLIB | {"axes.grid": False}):
        figure = Figure(figsize=(11, 3.2), layout="constrained")
        ax = figure.subplots()
        spans = sorted((ends[t.number] - t.charged, ends[t.number], t) for t in optimizer.trials if t.number in ends)
        zero, free_at = spans[0][0], []
        for start, end, trial in spans:
            row = next((k for k, free in enumerate(free_at) if free <= start + 0.003), len(free_at))
            free_at[row : row + 1] = [end]
            failed = trial.state is pbgi.TrialState.FAILED
            label = {
                "color": palette.VERMILLION if failed else palette.BLUE,
                "edgecolor": "white",
                "hatch": "//" if failed else "",
            }
            ax.barh(row, end - start, left=start - zero, **label)
            if trial == optimizer.best:
                ax.plot((start + end) / 2 - zero, row, "*", color="white", mec=palette.INK, ms=14)
        if killed is not None:
            ax.axvline(killed - zero, color=palette.INK, ls="--")
            ax.text(killed - zero, len(free_at) - 0.4, " killed, and started again", color=palette.INK, va="bottom")
        ax.set(xlabel="seconds on the clock", yticks=range(len(free_at)), ylabel="worker", ylim=(-0.6, len(free_at)))
        ax.set_title("Trials: hatched ones failed, the star is the best")
        figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description="Parallel trials, some failing, killed half-way and resumed.")
    parser.add_argument("--budget", type=float, default=3.0, help="seconds of work, of all workers together")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--state", type=Path, help="file for the state; by default one that is deleted at the end")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="folder for a picture")
    args = parser.parse_args()
    luck = random.Random(args.seed)  # noqa: S311 (a story, not a secret)
    with tempfile.TemporaryDirectory() as folder:
        path = args.state or Path(folder) / "state.json"
        print(f"{args.workers} workers, {args.budget:g} seconds of work:")
        lab = Lab(pbgi.Optimizer(SPACE, budget=args.budget, seed=args.seed), path, args.workers, luck)
        ends, killed = lab.ends, None
        try:
            reason = lab.run(killed_at=args.budget / 2)
        except Killed:
            killed = time.perf_counter()
            lab = Lab(pbgi.Optimizer.from_json(path.read_text()), path, args.workers, luck)
            lost = sum(trial.state is pbgi.TrialState.RUNNING for trial in lab.optimizer.trials)
            done = len(lab.optimizer.trials) - lost
            print(f"Killed. The file knows {done} finished trials; {lost} were under way and are run again:")
            reason = lab.run()
    tell_the_end(lab.optimizer, reason)
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        draw(lab.optimizer, ends | lab.ends, killed, args.out / "parallel.png")


if __name__ == "__main__":
    main()
