"""Whole random programs: the parts put together as scripts, functions, classes or closures."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.properties.draw import Draw
from tests.properties.loops import Loops
from tests.properties.plan import CLASSES, Fault, Plan
from tests.properties.sections import Lines, Scope, indented


def write(plan: Plan, faults: Iterable[Fault] = ()) -> dict[str, str]:
    """The files of a program that is one file, by their paths."""
    return {"train.py": with_comments(plan.draw, program_lines(plan, faults))}


def program_lines(plan: Plan, faults: Iterable[Fault] = ()) -> Lines:
    """A program as one file without comments."""
    return _Program(plan, faults).lines()


class _Program(Loops):
    def lines(self) -> Lines:
        self._helpers: Lines = []
        self._scope = Scope("fabric", self.draw.one("loader", "loader", "train_loader"))
        body = self._shapes()[self.plan.shape]()
        makers = [line for lines in self.makers.values() for line in [*lines, "", ""]]
        return [*self._imports(), "", *self._net(), *self._functions(), *makers, *self._helpers, *body]

    def _shapes(self) -> dict[str, Callable[[], Lines]]:
        return {
            "script": self._script,
            "main": self._main,
            "launch": self._launch,
            "closure": self._closure,
            "functions": lambda: self._with_function(per_step=False),
            "steps": lambda: self._with_function(per_step=True),
            "builder": self._builder,
            "class": self._trainer,
        }

    # --- head ---------------------------------------------------------------------------------------------------------

    def _imports(self) -> Lines:
        form = self.draw.one("import", "L", "Fabric", "fabric.Fabric", "lightning", "alias", "lf")
        head, self._fabric_class = {
            "L": ("import lightning as L", "L.Fabric"),
            "Fabric": ("from lightning import Fabric", "Fabric"),
            "fabric.Fabric": ("from lightning.fabric import Fabric", "Fabric"),
            "lightning": ("import lightning", "lightning.Fabric"),
            "alias": ("from lightning.fabric import Fabric as LightFabric", "LightFabric"),
            "lf": ("import lightning.fabric as lf", "lf.Fabric"),
        }[form]
        lines = [
            "import argparse",
            head,
            "import torch",
            "import torch.nn.functional as F",
            "from torch import nn, optim",
        ]
        if self.plan.source == "object":
            names = sorted({CLASSES[family] for family in self.plan.families})
            lines.append(f"from lightning.fabric.strategies import {', '.join(names)}")
        if self.plan.several_files:
            lines.append("from dataclasses import dataclass")
        return [*lines, "from torch.utils.data import DataLoader, TensorDataset", "", "torch.manual_seed(1)"]

    def _make_fabric(self, name: str, launch: bool = True) -> Lines:
        self._imports()
        before, strategy = self._strategy()
        arguments = [f'accelerator="{self._accelerator()}"', "devices=1"] if self.draw.chance("devices", 70) else []
        if strategy:
            arguments.append(f"strategy={strategy}")
        if self.draw.chance("precision", 20):
            arguments.append('precision="32-true"')
        launched = [f"{name}.launch()"] if launch else []
        made = f"{name} = {self._fabric_class}({', '.join(arguments)})"
        if self.plan.several_files and self.draw.chance("fabric maker", 20):
            work = [*before, made, *launched, f"return {name}"]
            self.makers["make_fabric"] = ["def make_fabric():", *indented(work)]
            return [f"{name} = make_fabric()"]
        if launched and self.draw.chance("one line", 8):
            return [*before, f"{made}; {launched[0]}"]
        return [*before, made, *launched]

    def _accelerator(self) -> str:
        """One that all strategies of the program can run on."""
        needed = {"deepspeed": "cuda", "xla": "tpu", "xla_fsdp": "tpu"}
        found = {needed[family] for family in self.plan.families if family in needed}
        if len(found) > 1 or (found == {"tpu"} and len(self.plan.families) > 1):
            return "auto"
        return found.pop() if found else self.draw.one("accelerator", "cpu", "auto", "cuda")

    def _strategy(self) -> tuple[Lines, str]:
        """Statements above the Fabric, and the value of its `strategy=`."""
        source, families = self.plan.source, self.plan.families
        if source == "option":
            return [*_PARSER, 'parser.add_argument("--strategy", required=False)', *_PARSED], "args.strategy or 'auto'"
        values = [self._named(number, self._value(family)) for number, family in enumerate(families)]
        if len(values) == 2:
            head = [*_PARSER, 'parser.add_argument("--first", action="store_true")', *_PARSED, "if args.first:"]
            return [*head, f"    strategy = {values[0]}", "else:", f"    strategy = {values[1]}"], "strategy"
        if families == ("auto",) and self.draw.chance("no strategy", 50):
            return [], ""
        if source == "argparse" and self.plan.several_files and self.draw.chance("parser apart", 50):
            work = [*_PARSER, f'parser.add_argument("--strategy", default={values[0]})', "return parser.parse_args()"]
            self.makers["parse"] = ["def parse():", *indented(work)]
            return ["args = parse()"], "args.strategy"
        if source == "argparse":
            return [*_PARSER, f'parser.add_argument("--strategy", default={values[0]})', *_PARSED], "args.strategy"
        return ([f"strategy = {values[0]}"], "strategy") if source == "variable" else ([], values[0])

    def _value(self, family: str) -> str:
        if self.plan.source == "object":
            return f"{CLASSES[family]}()"
        return f'"{self.plan.spelled(family)}"'

    def _named(self, number: int, value: str) -> str:
        """The value of a strategy, or a constant of the program that holds it."""
        place = self.draw.one("strategy place", "", "", "constant", "field") if self.plan.several_files else ""
        if place == "constant":
            name = "OTHER_STRATEGY" if number else "STRATEGY"
            self.makers[name] = [f"{name} = {value}"]
            return name
        if place == "field" and not number and self.plan.source != "object":
            fields = [f"strategy: str = {value}", "devices: int = 1"]
            self.makers["Config"] = ["@dataclass", "class Config:", *indented(fields)]
            return "Config().strategy"
        return value

    def _net(self) -> Lines:
        body = ["def __init__(self, inputs, outputs):", "    super().__init__()"]
        body += [
            "    self.layers = nn.Linear(inputs, outputs)",
            "",
            "def forward(self, x):",
            "    return self.layers(x)",
        ]
        return ["class Net(nn.Module):", *indented(body), "", ""]

    def _functions(self) -> Lines:
        make = ["def make_model(inputs, outputs):", "    return Net(inputs, outputs)", "", ""]
        loss = ["def compute_loss(model, x, y):", "    return F.mse_loss(model(x), y)", "", ""]
        told = ["def describe(model):", "    return len(list(model.parameters()))", "", ""]
        return [*make, *loss, *told]

    # --- shapes -------------------------------------------------------------------------------------------------------

    def _all(self, launch: bool = True, fabric: bool = True) -> Lines:
        """Everything in one scope."""
        scope = self._scope
        head = self._make_fabric("fabric", launch) if fabric else []
        work = [*self._ready(scope), *self.loop(scope, self.body(scope))]
        if self.plan.folds:
            return [*head, "losses = []", "for fold in range(2):", *indented(work), *self.ending(scope)]
        return [*head, "losses = []", *work, *self.ending(scope)]

    def _ready(self, scope: Scope) -> Lines:
        loader, models = self.set_up_loader(scope.fabric, scope.loader), self.set_up_all(scope.fabric)
        first = self.draw.one("loader first", True, False)
        return [*loader, *models] if first else [*models, *loader]

    def _script(self) -> Lines:
        return self._all()

    def _main(self) -> Lines:
        guard = self.draw.one("guard", ["main()"], ['if __name__ == "__main__":', "    main()"])
        return ["def main():", *indented(self._all()), "", "", *guard]

    def _launch(self) -> Lines:
        parameter = self._parameter()
        body = ["def main(" + parameter + "):", *indented(self._all(fabric=False)), "", ""]
        return [*body, *self._make_fabric("fabric", launch=False), "fabric.launch(main)"]

    def _parameter(self) -> str:
        self._imports()
        annotated = self.draw.one(
            "annotated", "fabric", f"fabric: {self._fabric_class}", f'fabric: "{self._fabric_class}"'
        )
        return annotated

    def _closure(self) -> Lines:
        scope = self._scope
        inner = "def train_step(x, y, waiting=False):"
        work = [inner, *indented(self.body(scope)), ""]
        call = ["train_step(x, y, waiting)" if self.plan.accumulates else "train_step(x, y)"]
        ready = self._ready(scope)
        early = self.draw.one("closure", False, True)
        body = [*work, *ready] if early else [*ready, *work]
        lines = [*self._make_fabric("fabric"), "losses = []", *body, *self.loop(scope, call), *self.ending(scope)]
        return ["def main():", *indented(lines), "", "", "main()"]

    def _parameters(self) -> tuple[Scope, str]:
        """The scope of a function that gets everything as parameters, and the arguments at its call."""
        numbers = range(len(self.plan.slots))
        same = self.draw.one("parameter names", True, False)
        slots = self.plan.slots
        models = tuple(slot.raw if same else f"m{index}" for index, slot in enumerate(slots))
        optimizers = tuple(slot.optimizer if same else f"o{index}" for index, slot in enumerate(slots))
        inner = Scope("fabric", "batches", models, optimizers)
        given = [self.model(index, "pass", self._scope) for index in numbers]
        return inner, ", ".join([*given, *(self.optimizer(index, self._scope) for index in numbers)])

    def _with_function(self, per_step: bool) -> Lines:
        inner, arguments = self._parameters()
        assert inner.models is not None
        assert inner.optimizers is not None
        first = "x, y, waiting" if per_step else "batches"
        names = ", ".join([self._parameter(), first, *inner.models, *inner.optimizers])
        work = self.body(inner) if per_step else self.loop(inner, self.body(inner))
        name = "update" if per_step else "train"
        self._helpers = [f"def {name}({names}):", *indented(["losses = []", *work, "return losses"]), "", ""]
        scope = self._scope
        if per_step:
            waiting = "waiting" if self.plan.accumulates else "False"
            call = self.loop(scope, [f"losses += update(fabric, x, y, {waiting}, {arguments})"])
        else:
            call = [f"losses += train(fabric, {scope.loader}, {arguments})"]
        lines = [*self._make_fabric("fabric"), "losses = []", *self._ready(scope), *call, *self.ending(scope)]
        return ["def main():", *indented(lines), "", "", "main()"]

    def _builder(self) -> Lines:
        """The models are made and set up in a function that returns them."""
        numbers, slots = range(len(self.plan.slots)), self.plan.slots
        given = [self.model(index, "pass", self._scope) for index in numbers]
        given += [self.optimizer(index, self._scope) for index in numbers]
        given += [slot.scheduler for index, slot in enumerate(slots) if self.plan.has_scheduler(index)]
        build = [*self.set_up_all("fabric"), f"return {', '.join(given)}"]
        self._helpers = [f"def build({self._parameter()}):", *indented(build), "", ""]
        models = tuple(slot.raw for slot in slots)
        inner = Scope("fabric", self._scope.loader, models, tuple(slot.optimizer for slot in slots))
        targets = [*models, *(slot.optimizer for slot in slots)]
        targets += [slot.scheduler for index, slot in enumerate(slots) if self.plan.has_scheduler(index)]
        lines = [*self._make_fabric("fabric"), "losses = []", *self.set_up_loader("fabric", inner.loader)]
        lines += [f"{', '.join(targets)} = build(fabric)", *self.loop(inner, self.body(inner)), *self.ending(inner)]
        return ["def main():", *indented(lines), "", "", "main()"]

    def _trainer(self) -> Lines:
        scope = Scope("self.fabric", "self.loader", losses="self.losses")
        self._scope = scope
        apart = self.draw.one("set-up method", "__init__", "setup", "fit")
        ready, keep = self._ready(scope), ["self.fabric = fabric", "self.losses = []"]
        step = self.draw.chance("step method", 50)
        body = ["self.training_step(x, y, waiting)"] if step and self.plan.accumulates else ["self.training_step(x, y)"]
        fit = [*self.loop(scope, body if step else self.body(scope)), *self.ending(scope)]
        head = f"def __init__(self, {self._parameter()}):"
        methods = {"__init__": [head, *indented([*keep, *(ready if apart == "__init__" else [])])]}
        if apart == "setup":
            methods["setup"] = ["def setup(self):", *indented(ready)]
        if step:
            methods["step"] = ["def training_step(self, x, y, waiting=False):", *indented(self.body(scope))]
        methods["fit"] = ["def fit(self):", *indented([*(ready if apart == "fit" else []), *fit])]
        classes = self._classes(methods)
        calls = ["trainer = Trainer(fabric)", *(["trainer.setup()"] if apart == "setup" else []), "trainer.fit()"]
        lines = [*self._make_fabric("fabric"), *calls]
        return [*classes, "def main():", *indented(lines), "", "", "main()"]

    def _classes(self, methods: dict[str, Lines]) -> Lines:
        """The trainer's class, and the one that it gets some of its methods from."""
        options = {
            "": (),
            "base": ("__init__", "setup", "step"),
            "template": ("__init__", "setup", "fit"),
            "mixin": ("step",) if "step" in methods else ("fit",),
            "init": ("__init__",),
            "extended": ("__init__", "fit"),
        }
        form = self.draw.one("trainer", *options) if self.plan.several_files else ""
        above = {name: lines for name, lines in methods.items() if name in options[form]}
        own = {name: lines for name, lines in methods.items() if name not in above}
        if not above or not own:
            return _class("Trainer", methods)
        if form == "template" and "step" in own:
            above["step"] = [own["step"][0], "    raise NotImplementedError"]
        if form == "extended":
            head, *init = above["__init__"]
            above["__init__"] = [head, *init[:2]]
            own["__init__"] = [head, "    super().__init__(fabric)", *init[2:]]
        return [*_class("BaseTrainer", above), *_class("Trainer(BaseTrainer)", own)]


def _class(name: str, methods: dict[str, Lines]) -> Lines:
    body = [line for lines in methods.values() for line in ["", *lines]]
    return [f"class {name}:", *indented(body[1:]), "", ""]


def with_comments(draw: Draw, lines: Lines) -> str:
    """The text of a file, with comments in all places."""
    found: Lines = []
    depth, seen = 0, dict[str, int]()
    for line in lines:
        number = seen[line] = seen.get(line, 0) + 1
        free = line.strip() and not depth and "#" not in line
        depth += sum(line.count(c) for c in "([{") - sum(line.count(c) for c in ")]}")
        place = draw.one(f"comment {number} {line.strip()}", *[""] * 10, "above", "behind") if free else ""
        note = f"# note {len(found)}"
        if place == "above" and not line.lstrip().startswith(("else", "except")):
            found.append(line[: len(line) - len(line.lstrip())] + note)
        found.append(f"{line}  {note}" if place == "behind" and not depth else line)
    return "\n".join(found) + "\n"


_PARSER = ["parser = argparse.ArgumentParser()"]
_PARSED = ["args = parser.parse_args()"]
