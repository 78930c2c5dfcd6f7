"""The runner tells each way a program can end apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.runner import Outcome, Runner, RuntimeFailure, parse_losses

TRAINING = """\
import torch
import lightning as L

fabric = L.Fabric(devices=4, strategy="fsdp")
fabric.launch()
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = fabric.setup(model, optimizer)
loss = model(torch.ones(4, 2)).pow(2).mean()
fabric.backward(loss)
optimizer.step()
print("strategy", type(fabric.strategy).__name__)
print("losses:", f"{loss.item():.4f}")
"""


def _program(folder: Path, text: str) -> Path:
    path = folder / "program.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_losses_are_those_of_the_last_line() -> None:
    assert parse_losses("losses: 1 2\nepoch 2\nlosses: 0.5 0.25\ndone\n") == (0.5, 0.25)


def test_losses_of_a_program_that_prints_none() -> None:
    assert parse_losses("the losses: 1 2\n") == ()


def test_interpreter_without_the_runtime(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'No module named torch' >&2\nexit 1\n", encoding="utf-8")
    python.chmod(0o755)
    with pytest.raises(RuntimeFailure, match="No module named torch"):
        Runner(str(python))


@pytest.mark.runtime
@pytest.mark.parametrize(
    ("strategy", "expected"),
    [("auto", "SingleDeviceStrategy"), ("ddp", "DDPStrategy"), ("deepspeed", "DeepSpeedStrategy")],
)
def test_program_runs_under_the_strategy_that_is_named(
    torch_runner: Runner, tmp_path: Path, strategy: str, expected: str
) -> None:
    result = torch_runner.run(_program(tmp_path, TRAINING), strategy)
    assert result.outcome is Outcome.OK, result.describe()
    assert f"strategy {expected}\n" in result.output
    assert len(result.losses) == 1
    assert result.counts == {"forward": 1, "synchronised forward": 1, "step": 1, "iteration": 0}


@pytest.mark.runtime
def test_raw_model_leaves_no_count(torch_runner: Runner, tmp_path: Path) -> None:
    text = TRAINING.replace("model, optimizer = fabric.setup", "fabric.setup")
    result = torch_runner.run(_program(tmp_path, text), "ddp")
    assert result.outcome is Outcome.OK, result.describe()
    assert set(result.counts.values()) == {0}


@pytest.mark.runtime
def test_exception_is_told_with_its_type(torch_runner: Runner, tmp_path: Path) -> None:
    result = torch_runner.run(_program(tmp_path, "raise KeyError('weights')"), "auto")
    assert (result.outcome, result.error_type, result.message) == (Outcome.ERROR, "KeyError", "'weights'")


@pytest.mark.runtime
def test_exit_status_of_zero_is_no_error(torch_runner: Runner, tmp_path: Path) -> None:
    result = torch_runner.run(_program(tmp_path, "import sys\nprint('losses: 1')\nsys.exit(0)"), "auto")
    assert (result.outcome, result.losses) == (Outcome.OK, (1.0,))


@pytest.mark.runtime
def test_program_that_kills_itself(torch_runner: Runner, tmp_path: Path) -> None:
    result = torch_runner.run(_program(tmp_path, "import os\nos.kill(os.getpid(), 9)"), "auto")
    assert result.outcome is Outcome.CRASH


@pytest.mark.runtime
def test_program_that_does_not_end(torch_runner: Runner, tmp_path: Path) -> None:
    result = torch_runner.run(_program(tmp_path, "while True: pass"), "auto", limit=0.5)
    assert result.outcome is Outcome.TIMEOUT


@pytest.mark.runtime
def test_runs_side_by_side_do_not_meet(torch_runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "outer").mkdir()
    inner = _program(tmp_path, TRAINING)
    nested = (
        f"import sys\nsys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
        + TRAINING
        + "from pathlib import Path\nfrom tests.runtime.runner import Runner\n"
        + f"with Runner(sys.executable) as runner: print(runner.run(Path({str(inner)!r}), 'ddp').outcome.value)\n"
    )
    result = torch_runner.run(_program(tmp_path / "outer", nested), "ddp")
    assert result.output.endswith("ok\n"), result.describe()
