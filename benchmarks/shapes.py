"""Programs of any size, each of a shape that makes an analysis slow which looks at something once too often."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """A kind of program; `make(n)` writes one of size `n`, and what takes four times as long may be four times it."""

    name: str
    make: Callable[[int], str]
    size: int
    """The smallest of the three sizes that are measured: once, twice and four times this one."""


HEAD = """\
import torch
from lightning.fabric import Fabric

fabric = Fabric(accelerator="cpu", devices=2, strategy="{strategy}")
fabric.launch()
"""


def _program(lines: Iterable[str], strategy: str = "ddp") -> str:
    return HEAD.format(strategy=strategy) + "".join(f"{line}\n" for line in lines)


def _model(name: str) -> list[str]:
    return [f"{name} = torch.nn.Linear(4, 2)", f"{name}_optimizer = torch.optim.SGD({name}.parameters(), lr=0.1)"]


def _training(name: str) -> list[str]:
    """The lines of a training step that is right."""
    return [
        f"{name}_optimizer.zero_grad()",
        f"{name}_loss = {name}(torch.rand(2, 4)).sum()",
        f"fabric.backward({name}_loss)",
        f"{name}_optimizer.step()",
    ]


def _set_up(name: str) -> list[str]:
    return [*_model(name), f"{name}, {name}_optimizer = fabric.setup({name}, {name}_optimizer)"]


def _indented(lines: Iterable[str], depth: int = 1) -> list[str]:
    return [f"{'    ' * depth}{line}" for line in lines]


def long_function(size: int) -> str:
    """One function of `size` lines, most of which have nothing to do with Fabric."""
    body = _set_up("model")
    for number in range(size // 5):
        body += [
            f"width_{number} = {number} * 3 + 1",
            f"names = [str(width_{number}), 'a']",
            f"if width_{number} > 5:",
            f"    print(names, width_{number})",
            f"total = width_{number} + len(names)",
        ]
    return _program(["def main(fabric):", *_indented([*body, *_training("model")]), "main(fabric)"])


def one_name(size: int) -> str:
    """`size` assignments of one name."""
    lines = _set_up("model")
    return _program([*lines, *(f"x = torch.rand({number})" for number in range(size)), *_training("model")])


def one_name_from_itself(size: int) -> str:
    """`size` assignments of one name, each made from the one before."""
    body = ["x = model(torch.rand(2, 4))", *("x = torch.relu(x) + x" for _ in range(size))]
    body += ["loss = x.sum()", "fabric.backward(loss)", "model_optimizer.step()"]
    return _program([*_set_up("model"), *body])


def chain(size: int) -> str:
    """Functions that call each other, `size` deep, with the model given on."""
    lines = [f"def f{size}(fabric, model, x):", "    loss = model(x).sum()", "    fabric.backward(loss)"]
    for number in reversed(range(size)):
        lines += [f"def f{number}(fabric, model, x):", f"    return f{number + 1}(fabric, model, x)"]
    return _program([*lines, *_set_up("model"), "f0(fabric, model, torch.rand(2, 4))", "model_optimizer.step()"])


def doubling_chain(size: int) -> str:
    """Functions that each call the next one twice: 2^size calls when each is followed."""
    lines = [f"def f{size}(fabric, model, x):", "    return model(x).sum()"]
    for number in reversed(range(size)):
        following = f"f{number + 1}(fabric, model, x)"
        lines += [f"def f{number}(fabric, model, x):", f"    return {following} + {following}"]
    tail = ["fabric.backward(f0(fabric, model, torch.rand(2, 4)))", "model_optimizer.step()"]
    return _program([*lines, *_set_up("model"), *tail])


def mutual_recursion(size: int) -> str:
    """`size` functions that each call two others, in rings."""
    lines: list[str] = []
    for number in range(size):
        first, second = (number + 1) % size, (number * 7 + 3) % size
        lines += [
            f"def f{number}(fabric, model, x, depth):",
            "    if depth == 0:",
            "        return model(x).sum()",
            f"    return f{first}(fabric, model, x, depth - 1) + f{second}(fabric, model, x, depth - 2)",
        ]
    tail = ["fabric.backward(f0(fabric, model, torch.rand(2, 4), 3))", "model_optimizer.step()"]
    return _program([*lines, *_set_up("model"), *tail])


def literal(size: int) -> str:
    """A list of `size` numbers in one line."""
    numbers = ", ".join(str(number * 7919 % 1000) for number in range(size))
    return _program([f"TABLE = [{numbers}]", *_set_up("model"), *_training("model")])


def dictionary(size: int) -> str:
    """A dict of `size` lists of strings, over as many lines."""
    rows = [f"    'key {number}': ['a', 'b', {number}]," for number in range(size)]
    return _program(["TABLE = {", *rows, "}", *_set_up("model"), *_training("model")])


def raw_on_a_long_line(size: int) -> str:
    """A fault on each of 10 lines that are `size` characters long."""
    lines = _set_up("model")
    for number in range(10):
        lines += [f"loss = model(torch.rand(2, 4)).sum(); loss.backward(); s = '{'x' * size}'; model_optimizer.step()"]
        lines += [f"print(s, {number})"]
    return _program(lines)


def methods(size: int) -> str:
    """A class of `size` methods that all use Fabric."""
    lines = ["class Trainer:", "    def __init__(self):", "        self.fabric = fabric", "        self.state = {}"]
    lines += _indented([f"self.{line}" for line in ("model = torch.nn.Linear(4, 2)",)], 2)
    lines += _indented(["self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)"], 2)
    lines += _indented(["self.model, self.optimizer = self.fabric.setup(self.model, self.optimizer)"], 2)
    for number in range(size):
        lines += [
            f"    def step_{number}(self, x):",
            "        loss = self.model(x).sum()",
            "        self.fabric.backward(loss)",
            f"        self.last_{number} = loss",
            "        self.optimizer.step()",
        ]
    return _program(lines)


def methods_in_a_row(size: int) -> str:
    """A class of `size` methods, each of which calls the next one."""
    lines = ["class Trainer:", "    def __init__(self, fabric):", "        self.fabric = fabric"]
    lines += _indented(["self.model = fabric.setup(torch.nn.Linear(4, 2))"], 2)
    for number in range(size):
        call = f"self.step_{number + 1}(x)" if number + 1 < size else "self.model(x)"
        lines += [f"    def step_{number}(self, x):", f"        self.x_{number} = x", f"        return {call}"]
    return _program([*lines, "trainer = Trainer(fabric)", "trainer.step_0(torch.rand(2, 4))"])


def one_helper(size: int) -> str:
    """`size` functions that call one helper."""
    lines = [
        "def helper(fabric, model, x):",
        "    loss = model(x).sum()",
        "    fabric.backward(loss)",
        "    return loss",
    ]
    for number in range(size):
        lines += [f"def f{number}(fabric, model, x):", f"    return helper(fabric, model, x) * {number}"]
    calls = [f"f{number}(fabric, model, torch.rand(2, 4))" for number in range(size)]
    return _program([*lines, *_set_up("model"), *calls, "model_optimizer.step()"])


def right_setups(size: int) -> str:
    """`size` models that are set up and trained as they should be."""
    return _program(line for n in range(size) for line in (*_set_up(f"model_{n}"), *_training(f"model_{n}")))


def discarded_setups(size: int) -> str:
    """`size` models whose set-up is thrown away."""
    lines: list[str] = []
    for number in range(size):
        name = f"model_{number}"
        lines += [*_model(name), f"fabric.setup({name}, {name}_optimizer)", *_training(name)]
    return _program(lines)


def discarded_in_functions(size: int) -> str:
    """`size` functions that each throw a set-up away."""
    lines: list[str] = []
    for number in range(size):
        body = [*_model("model"), "fabric.setup(model, model_optimizer)", *_training("model")]
        lines += [f"def train_{number}(fabric):", *_indented(body), f"train_{number}(fabric)"]
    return _program(lines)


def split_setups(size: int) -> str:
    """`size` models set up apart from their optimizers under DeepSpeed."""
    lines: list[str] = []
    for number in range(size):
        name = f"model_{number}"
        model, optimizer = _model(name)
        lines += [model, f"{name} = fabric.setup_module({name})", optimizer]
        lines += [f"{name}_optimizer = fabric.setup_optimizers({name}_optimizer)", *_training(name)]
    return _program(lines, "deepspeed")


def split_in_functions(size: int) -> str:
    """`size` functions that each set a model up apart from its optimizer under DeepSpeed."""
    model, optimizer = _model("model")
    body = [model, "model = fabric.setup_module(model)", optimizer]
    body += ["model_optimizer = fabric.setup_optimizers(model_optimizer)", *_training("model")]
    lines: list[str] = []
    for number in range(size):
        lines += [f"def train_{number}(fabric):", *_indented(body), f"train_{number}(fabric)"]
    return _program(lines, "deepspeed")


def raw_backwards(size: int) -> str:
    """`size` backwards past Fabric."""
    lines = _set_up("model")
    for _ in range(size):
        lines += ["model_optimizer.zero_grad()", "loss = model(torch.rand(2, 4)).sum()", "loss.backward()"]
        lines += ["model_optimizer.step()"]
    return _program(lines)


def backwards_without_model(size: int) -> str:
    """`size` backwards of two models under DeepSpeed, none of which says of which."""
    lines = [*_set_up("model"), *_set_up("other")]
    for _ in range(size):
        lines += [*_training("model"), *_training("other")]
    return _program(lines, "deepspeed")


def forwards_outside(size: int) -> str:
    """`size` blocks of `no_backward_sync` without their forward."""
    lines = _set_up("model")
    lines += ["for step in range(8):"]
    for number in range(size):
        lines += _indented(
            [
                f"loss = model(torch.rand(2, 4)).sum() * {number}",
                "with fabric.no_backward_sync(model, enabled=step % 2 == 0):",
                "    fabric.backward(loss)",
                "if step % 2:",
                "    model_optimizer.step()",
            ]
        )
    return _program(lines)


def missing_setups(size: int) -> str:
    """`size` models that `backward` is called for and that nothing sets up."""
    return _program(line for n in range(size) for line in (*_model(f"model_{n}"), *_training(f"model_{n}")))


def repeated_setups(size: int) -> str:
    """`size` models that are set up twice."""
    lines: list[str] = []
    for number in range(size):
        name = f"model_{number}"
        lines += [*_set_up(name), f"{name} = fabric.setup_module({name})", *_training(name)]
    return _program(lines)


def stale_references(size: int) -> str:
    """`size` models that go on being used by their raw name."""
    lines: list[str] = []
    for number in range(size):
        name = f"model_{number}"
        lines += [*_model(name), f"wrapped_{number}, {name}_optimizer = fabric.setup({name}, {name}_optimizer)"]
        lines += [*_training(name)]
    return _program(lines)


def early_optimizers(size: int) -> str:
    """`size` optimizers made before their model is set up under FSDP."""
    lines = [line for n in range(size) for line in (*_set_up(f"model_{n}"), *_training(f"model_{n}"))]
    return _program(lines, "xla_fsdp")


def nested_loops(depth: int) -> str:
    """Loops in loops, `depth` deep; the body of each is looked at several times."""
    lines = _set_up("model")
    for level in range(depth):
        lines += _indented([f"for i{level} in range(3):"], level)
    return _program([*lines, *_indented(_training("model"), depth)])


def nested_ifs(depth: int) -> str:
    """Tests in tests, `depth` deep, with an `else` each."""
    lines = _set_up("model")
    for level in range(depth):
        lines += _indented([f"if flag_{level}:"], level)
    lines += _indented(_training("model"), depth)
    for level in reversed(range(depth)):
        lines += _indented(["else:", f"    print({level})"], level)
    return _program(lines)


def ifs_in_a_row(size: int) -> str:
    """`size` tests one after the other: 2^size ways through them."""
    lines = _set_up("model")
    for number in range(size):
        lines += [
            f"if flag_{number}:",
            f"    x_{number} = model(torch.rand(2, 4))",
            "else:",
            f"    x_{number} = {number}",
        ]
    return _program([*lines, *_training("model")])


def elifs(size: int) -> str:
    """One `if` with `size` arms."""
    lines = [*_set_up("model"), "if mode == 'start':", *_indented(_training("model"))]
    for number in range(size):
        lines += [f"elif mode == 'mode {number}':", *_indented(_training("model"))]
    return _program(lines)


def long_expression(size: int) -> str:
    """One sum of `size` calls."""
    return _program([*_set_up("model"), f"x = {' + '.join(['model(torch.rand(2, 4))'] * size)}", *_training("model")])


def method_chain(size: int) -> str:
    """One expression of `size` method calls, each on the result of the last one."""
    return _program([*_set_up("model"), f"x = model(torch.rand(2, 4)){'.relu()' * size}", *_training("model")])


def closures(depth: int) -> str:
    """Functions defined in functions, `depth` deep, of which the innermost trains."""
    lines: list[str] = []
    for level in range(depth):
        lines += _indented([f"def f{level}(x):"], level)
    lines += _indented(_training("model"), depth)
    for level in reversed(range(1, depth)):
        lines += _indented([f"f{level}(x)"], level)
    return _program([*_set_up("model"), *lines, "f0(1)"])


def try_blocks(size: int) -> str:
    """`size` `try` statements one after the other."""
    lines = _set_up("model")
    for _ in range(size):
        lines += ["try:", *_indented(_training("model")), "except ValueError as error:", "    print(error)"]
    return _program(lines)


def training_program(chosen: random.Random) -> str:
    """A small training program, right or with one fault, with some code around it."""
    faults: list[Callable[[int], str]] = [discarded_in_functions, split_in_functions, raw_backwards, stale_references]
    kind = chosen.choice([right_setups, right_setups, methods, one_helper, elifs, *faults])
    code = kind(chosen.randint(1, 4)) + long_function(chosen.randint(20, 200)).replace("main", "other")
    return f'"""Trains {chosen.randint(1, 1000)} epochs."""\n\n{code}'


SHAPES = (
    Shape("function of n lines", long_function, 5_000),
    Shape("n assignments of one name", one_name, 1_000),
    Shape("n assignments of one name from itself", one_name_from_itself, 1_000),
    Shape("call chain, n deep", chain, 250),
    Shape("call chain, n deep, two calls each", doubling_chain, 5),
    Shape("n functions in mutual recursion", mutual_recursion, 20),
    Shape("list of n numbers", literal, 100_000),
    Shape("dict of n lists", dictionary, 10_000),
    Shape("faults on lines of n characters", raw_on_a_long_line, 250_000),
    Shape("n methods on one class", methods, 300),
    Shape("n methods that call each other", methods_in_a_row, 300),
    Shape("n functions that call one helper", one_helper, 300),
    Shape("n models set up right", right_setups, 100),
    Shape("n discarded set-ups", discarded_setups, 75),
    Shape("n functions with a discarded set-up", discarded_in_functions, 75),
    Shape("n split set-ups", split_setups, 75),
    Shape("n functions with a split set-up", split_in_functions, 75),
    Shape("n backwards past Fabric", raw_backwards, 75),
    Shape("n backwards without model=", backwards_without_model, 75),
    Shape("n forwards outside of no_backward_sync", forwards_outside, 75),
    Shape("n models never set up", missing_setups, 75),
    Shape("n models set up twice", repeated_setups, 75),
    Shape("n stale references", stale_references, 75),
    Shape("n early optimizers under XLA FSDP", early_optimizers, 75),
    Shape("loops, n deep", nested_loops, 3),
    Shape("tests, n deep", nested_ifs, 20),
    Shape("n tests in a row", ifs_in_a_row, 250),
    Shape("n arms of one test", elifs, 75),
    Shape("sum of n forwards", long_expression, 250),
    Shape("n method calls on a result", method_chain, 250),
    Shape("functions in functions, n deep", closures, 5),
    Shape("n try statements", try_blocks, 100),
)
"""All of them; the sizes are such that the largest takes seconds at most where it is linear."""
