"""The parts of a program as lines of source: set-ups, loops, and the faults in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.properties.plan import Fault, Plan, Slot

Lines = list[str]


def indented(lines: Iterable[str]) -> Lines:
    """Lines one level deeper."""
    return ["    " + line if line else line for line in lines]


@dataclass(frozen=True)
class Scope:
    """What things are called in the code of a function."""

    fabric: str
    loader: str
    models: tuple[str, ...] | None = None
    """The models' names where they are parameters; None where they are those of the plan."""
    optimizers: tuple[str, ...] | None = None
    losses: str = "losses"


class Sections:
    """Writes the parts of one program with some faults."""

    def __init__(self, plan: Plan, faults: Iterable[Fault]) -> None:
        self.plan = plan
        self.draw = plan.draw
        self._faults = frozenset(faults)
        self.makers: dict[str, Lines] = {}
        """Functions that make things, by their names."""

    def has(self, kind: str, model: int = -1) -> bool:
        """Whether a fault is planted."""
        return Fault(kind, model, self.plan.number) in self._faults

    # --- names --------------------------------------------------------------------------------------------------------

    def target(self, index: int) -> str:
        """The name that the set-up of a model is bound to."""
        slot = self.plan.slots[index]
        stale = self.has("stale", index) or self.has("stale_call", index)
        return slot.stale if stale and slot.raw == slot.wrapped else slot.wrapped

    def model(self, index: int, site: str, scope: Scope) -> str:
        """The model as it is named at a place that works with the wrapped one."""
        if scope.models is not None:
            name = scope.models[index]
        elif self.has("missing", index) or self._is_stale(index, site):
            name = self.plan.slots[index].raw
        else:
            name = self.target(index)
        if self.has("unwrap", index) and site in ("sync", "backward"):
            return f"{name}.{self.draw.one(f'inside {index}', 'module', '_forward_module', '_original_module')}"
        return name

    def _is_stale(self, index: int, site: str) -> bool:
        if self.has("stale_call", index):
            return site == "call"
        if not self.has("stale", index) or site == "pass":
            return self.has("stale", index)
        return site in self.draw.one(
            f"stale uses {index}", ("call", "sync", "backward"), ("call",), ("sync", "backward"), ("call", "sync")
        )

    def optimizer(self, index: int, scope: Scope) -> str:
        """The optimizer as it is named in a loop."""
        slot = self.plan.slots[index]
        if scope.optimizers is not None:
            return scope.optimizers[index]
        raw = self.has("stale_optimizer", index) or self.has("missing", index)
        return slot.optimizer if raw else slot.wrapped_optimizer

    # --- making and setting up ----------------------------------------------------------------------------------------

    def make_model(self, index: int, fabric: str) -> Lines:
        """The statements that make a model."""
        slot, draw = self.plan.slots[index], self.draw
        sizes = "4, 4" if self.plan.task == "gan" and index == 0 else "4, 1"
        kind = draw.one(f"model {index}", "Linear", "Sequential", "class", "builder")
        code = {
            "Linear": f"nn.Linear({sizes})",
            "Sequential": f"nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, {sizes[-1]}))",
            "class": f"Net({sizes})",
            "builder": f"make_model({sizes})",
        }[kind]
        made = [f"{slot.raw} = {code}"]
        flow = draw.one(f"made under {index}", "", "", "", "if", "init", "device", "try")
        if flow == "init" and not fabric:
            return made
        if flow == "if":
            wide = f"nn.Sequential(nn.Linear(4, 99), nn.Linear(99, {sizes[-1]}))"
            head = "if torch.cuda.is_available():"
            return [head, *indented([f"{slot.raw} = {wide}"]), "else:", *indented(made)]
        if flow == "try":
            return ["try:", *indented(made), "except ImportError:", *indented(["raise"])]
        if flow:
            context = f"{fabric}.init_module()" if flow == "init" else 'torch.device("cpu")'
            return [f"with {context}:", *indented(made)]
        return made

    def neighbour(self, index: int, place: str) -> Lines:
        """A statement beside a set-up; most of them a wrapped model takes as well as a raw one."""
        raw = self.plan.slots[index].raw
        if not self.draw.chance(f"neighbour {place} {index}", 35):
            return []
        options = {
            "count": [f"size_{index} = sum(p.numel() for p in {raw}.parameters())"],
            "train": [f"{raw}.train()"],
            "thaw": [f"for p in {raw}.parameters():", "    p.requires_grad_(True)"],
            "load": [f"if len([]) == 1:  # no checkpoint {index}", f"    {raw}.load_state_dict({raw}.state_dict())"],
            "warm": ["with torch.no_grad():", f"    {raw}(torch.randn(2, 4))"],
            "check": [f"assert isinstance({raw}, nn.Module)"],
            "told": [f"described_{index} = describe({raw})"],
        }
        return options[self.draw.one(f"neighbour {place} {index} is", *options)]

    def make_optimizer(self, index: int, model: str) -> Lines:
        """The statement that makes an optimizer."""
        draw, slot = self.draw, self.plan.slots[index]
        cls = draw.one("optimizer class", "torch.optim.SGD", "torch.optim.Adam", "optim.AdamW")
        form = draw.one(f"parameters {index}", "plain", "plain", "list", "filter", "groups")
        params = {
            "plain": f"{model}.parameters()",
            "list": f"list({model}.parameters())",
            "filter": f"[p for p in {model}.parameters() if p.requires_grad]",
            "groups": f'[{{"params": {model}.parameters(), "weight_decay": 0.0}}]',
        }[form]
        if self.plan.several_files and draw.chance("optimizer maker", 20):
            self.makers["make_optimizer"] = [
                "def make_optimizer(parameters, lr):",
                f"    return {cls}(parameters, lr=lr)",
            ]
            cls = "make_optimizer"
        return [f"{slot.optimizer} = {cls}({params}, lr=0.0{index + 1})"]

    def _pair(self, index: int) -> Lines:
        """The statement that has the raw model and its optimizer made by a function."""
        slot = self.plan.slots[index]
        made = [
            *self.make_model(index, ""),
            *self.make_optimizer(index, slot.raw),
            f"return {slot.raw}, {slot.optimizer}",
        ]
        name = f"make_pair_{index}"
        self.makers[name] = [f"def {name}():", *indented(line.replace("self.", "") for line in made)]
        return [f"{slot.raw}, {slot.optimizer} = {name}()"]

    def make_scheduler(self, index: int) -> Lines:
        """The statement that makes a scheduler on the raw optimizer."""
        slot = self.plan.slots[index]
        if not self.plan.has_scheduler(index):
            return []
        return [f"{slot.scheduler} = torch.optim.lr_scheduler.StepLR({slot.optimizer}, step_size=2)"]

    def call(self, name: str, targets: str, callee: str, arguments: list[str], discard: bool = False) -> Lines:
        """A set-up call, on one line or on several with comments."""
        form = self.draw.one(f"form of {name}", "short", "short", "short", "long", "comments", "annotated")
        head = "" if discard else f"{targets} = "
        if form == "long":
            return [f"{head}{callee}(", *[f"    {argument}," for argument in arguments], ")"]
        if form == "comments":
            lines = [f"    {argument},  # {name} {at}" for at, argument in enumerate(arguments)]
            return [f"{head}{callee}(", *lines, ")"]
        return [f"{head}{callee}({', '.join(arguments)})"]

    def set_up(self, index: int, fabric: str) -> Lines:
        """The statements from a raw model to a wrapped one with its optimizer."""
        plan, slot = self.plan, self.plan.slots[index]
        schedule = self.make_scheduler(index)
        made = [] if plan.has_pair(index) else self.make_optimizer(index, slot.raw)
        first, second = self.neighbour(index, "first"), self.neighbour(index, "second")
        if self.has("missing", index):
            return [*first, *made, *schedule, *second]
        style = plan.style
        if self.has("split", index):
            style = "late" if plan.has_pair(index) else self.draw.one(f"split {index}", "separate", "late")
        elif self.has("joint", index):
            style = "joint"
        elif self.has("early", index):
            style = "late"
        if style == "joint":
            return [*first, *made, *schedule, *second, *self._joint(index, slot, fabric)]
        module, optimizer = self._module(index, slot, fabric), self._optimizer(index, slot, fabric)
        if style == "late":
            return [*first, *made, *schedule, *module, *second, *optimizer]
        wrapped = self.draw.chance(f"made on wrapped {index}", 70) and not self.has("discard", index)
        made = self.make_optimizer(index, self.target(index) if wrapped else slot.raw)
        return [*first, *module, *made, *schedule, *optimizer, *second]

    def _joint(self, index: int, slot: Slot, fabric: str) -> Lines:
        arguments, targets = [slot.raw, slot.optimizer], [self.target(index), slot.wrapped_optimizer]
        if self.has("misplaced", index):
            arguments.append(slot.scheduler)
            targets.append(slot.scheduler)
        discard = self.has("discard", index)
        lines = self.call(f"setup {index}", ", ".join(targets), f"{fabric}.setup", arguments, discard)
        return lines * 2 if self.has("repeated", index) else lines

    def _module(self, index: int, slot: Slot, fabric: str) -> Lines:
        method = self.draw.one(f"method {index}", "setup_module", "setup")
        discard = self.has("discard", index)
        if self.has("bypass_setup", index):
            return [f"{self.target(index)} = {fabric}.strategy.setup_module({slot.raw})"]
        if self.has("split", index):
            method = "setup_module"
        lines = self.call(f"setup {index}", self.target(index), f"{fabric}.{method}", [slot.raw], discard)
        return lines * 2 if self.has("repeated", index) else lines

    def _optimizer(self, index: int, slot: Slot, fabric: str) -> Lines:
        discard = self.has("discard_optimizer", index)
        name = f"setup of optimizer {index}"
        return self.call(name, slot.wrapped_optimizer, f"{fabric}.setup_optimizers", [slot.optimizer], discard)

    def set_up_all(self, fabric: str) -> Lines:
        """All models, one after the other or side by side."""
        numbers = range(len(self.plan.slots))
        made = [self._pair(i) if self.plan.has_pair(i) else self.make_model(i, fabric) for i in numbers]
        ready = [self.set_up(index, fabric) for index in numbers]
        if self.draw.one("order of set-ups", "one by one", "models first") == "models first":
            return [line for part in (*made, *ready) for line in part]
        return [line for pair in zip(made, ready, strict=True) for part in pair for line in part]

    def set_up_loader(self, fabric: str, loader: str) -> Lines:
        """The loader, and its set-up."""
        batches = "DataLoader(TensorDataset(torch.randn(24, 4), torch.randn(24, 1)), batch_size=8)"
        target = f"{loader}_ready" if self.has("stale_loader") else loader
        call = f"{fabric}.setup_dataloaders({loader})"
        return [f"{loader} = {batches}", call if self.has("discard_loader") else f"{target} = {call}"]
