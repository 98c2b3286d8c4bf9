"""Runs in MLflow, Weights & Biases and TensorBoard: what their own readers find afterwards."""

import importlib
import json
import math
import struct
import sys
import time

import pytest

import pbgi
from pbgi.errors import MissingPackageError
from pbgi.integrations.tracking import MLflowCallback, TensorBoardCallback, WandbCallback, numbers_of

SPACE = {"x": pbgi.Float(0, 1)}
TRIALS = 8


def price_and_value(params):
    return (params["x"] - 0.3) ** 2, 1.0 + params["x"]


def search(callback):
    return pbgi.minimize(price_and_value, SPACE, budget=50, stop=pbgi.MaxTrials(TRIALS), seed=0, callbacks=[callback])


def expected(result):
    """What must be logged, trial by trial, from the result alone."""
    rows, spent, best = [], 0.0, math.inf
    for trial in result.trials:
        spent, best = spent + trial.cost, min(best, trial.value)
        rows.append(
            {"value": trial.value, "best_value": best, "cost": trial.cost, "spent": spent, "remaining": 50 - spent}
        )
    return rows


def index_by_trial(result):
    return {t.number: t.record["index"] for t in result.trials if "index" in t.record}


class Recorder:
    def __init__(self):
        self.rows, self.ends = [], []

    def __call__(self, optimizer, trial):
        self.rows.append(numbers_of(optimizer, trial))

    def end(self, reason):
        self.ends.append(reason)


def test_numbers_of_every_trial_and_one_end():
    recorder = Recorder()
    result = search(recorder)
    for row, known in zip(recorder.rows, expected(result), strict=True):
        assert {name: row[name] for name in known} == pytest.approx(known)
    indexed = [number for number, row in enumerate(recorder.rows) if "index" in row]
    assert indexed == list(index_by_trial(result)) != []
    assert recorder.ends == [result.stop_reason]


def test_a_failed_trial_is_logged_without_a_value():
    def fails_once(params, seen=[]):  # noqa: B006 (counts the calls)
        seen.append(params)
        if len(seen) == 2:
            raise RuntimeError("no")
        return price_and_value(params)

    recorder = Recorder()
    with pytest.warns(RuntimeWarning, match="failed"):
        pbgi.minimize(fails_once, SPACE, budget=10, stop=pbgi.MaxTrials(3), seed=0, callbacks=[recorder])
    assert ["value" in row for row in recorder.rows] == [True, False, True]


def test_the_end_is_told_after_ctrl_c():
    def interrupted(_params):
        raise KeyboardInterrupt

    recorder = Recorder()
    pbgi.minimize(interrupted, SPACE, budget=10, seed=0, callbacks=[recorder])
    assert recorder.ends == [None]


@pytest.mark.parametrize(
    ("make", "package"),
    [(MLflowCallback, "mlflow"), (WandbCallback, "wandb"), (lambda: TensorBoardCallback("x"), "tensorboardX")],
)
def test_a_missing_package_is_named(monkeypatch, make, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=f"pip install {package}"):
        make()


@pytest.mark.slow
def test_mlflow_file_store(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    mlflow.set_tracking_uri(f"file://{tmp_path}/runs")
    with mlflow.start_run() as run:
        result = search(MLflowCallback())
    client = mlflow.MlflowClient()
    for number, known in enumerate(expected(result)):
        for name, value in known.items():
            (logged,) = [m for m in client.get_metric_history(run.info.run_id, name) if m.step == number]
            assert logged.value == pytest.approx(value)
    logged_index = {m.step: m.value for m in client.get_metric_history(run.info.run_id, "index")}
    assert logged_index == pytest.approx(index_by_trial(result))
    assert client.get_run(run.info.run_id).data.tags["stop_reason"] == result.message


@pytest.mark.slow
@pytest.mark.parametrize("is_ours", [True, False])
def test_wandb_offline(tmp_path, monkeypatch, is_ours):
    wandb = pytest.importorskip("wandb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = None if is_ours else wandb.init(dir=tmp_path)
    result = search(WandbCallback(run))
    if run is not None:
        run.finish()
    rows, summary = wandb_rows(next(tmp_path.rglob("*.wandb")))
    assert [row["trial"] for row in rows] == list(range(TRIALS))
    for row, known in zip(rows, expected(result), strict=True):
        assert {name: row[name] for name in known} == pytest.approx(known)
    assert {row["trial"]: row["index"] for row in rows if "index" in row} == pytest.approx(index_by_trial(result))
    assert summary["stop_reason"] == result.message


def wandb_rows(file, seconds=30):
    """The rows and the summary in the file of an offline run, which another process may still be writing."""
    kind = importlib.import_module("wandb.proto.wandb_internal_pb2").Record
    until = time.monotonic() + seconds
    while True:
        records = [kind.FromString(data) for data in wandb_records(file.read_bytes())]
        if any(record.HasField("exit") for record in records) or time.monotonic() > until:
            break
        time.sleep(0.1)
    rows, summary = [], {}
    for record in records:
        if record.HasField("history"):
            items = items_of(record.history.item)
            rows.append({name: value for name, value in items.items() if not name.startswith("_")})
        summary |= items_of(record.summary.update)
    return rows, summary


def items_of(items):
    return {".".join(item.nested_key) or item.key: json.loads(item.value_json) for item in items}


def wandb_records(data):
    """The records of a log as LevelDB writes it: blocks of 32 KiB with pieces of records, after a header of 7 bytes."""
    at, record = 7, b""
    while at + 7 <= len(data):
        if (room := 2**15 - at % 2**15) < 7:
            at += room  # too short for the head of a piece
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        record += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last of its pieces
            yield record
            record = b""


@pytest.mark.slow
def test_tensorboard(tmp_path):
    pytest.importorskip("tensorboardX")
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    result = search(TensorBoardCallback(tmp_path))
    events = reader.EventAccumulator(str(tmp_path))
    events.Reload()
    for name in ("value", "best_value", "cost", "spent", "remaining"):
        logged = [(event.step, event.value) for event in events.Scalars(name)]
        wanted = [(number, row[name]) for number, row in enumerate(expected(result))]
        assert logged == [
            (step, pytest.approx(value, rel=1e-6)) for step, value in wanted
        ]  # stored in single precision
    assert {e.step: e.value for e in events.Scalars("index")} == pytest.approx(index_by_trial(result), rel=1e-6)
    (text,) = events.Tensors("stop_reason/text_summary")
    assert text.tensor_proto.string_val[0].decode() == result.message
