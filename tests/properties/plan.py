"""What a random program is: its strategies, models, shape and faults, all drawn by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from tests.properties.draw import Draw

JOINT_ONLY = frozenset({"deepspeed", "xla"})
SEPARATE_ONLY = frozenset({"xla_fsdp", "model_parallel"})
MODEL_FIRST = frozenset({"fsdp", "xla_fsdp", "model_parallel"})

_STRATEGIES: tuple[tuple[str, ...], ...] = (
    ("ddp",),
    ("auto",),
    ("deepspeed",),
    ("deepspeed",),
    ("deepspeed",),
    ("fsdp",),
    ("xla",),
    ("xla_fsdp",),
    ("model_parallel",),
    ("deepspeed", "ddp"),
    ("deepspeed", "xla"),
    ("deepspeed", "fsdp"),
    ("fsdp", "xla_fsdp"),
    ("ddp", "fsdp"),
)
_SPELLINGS = {
    "deepspeed": ("deepspeed", "deepspeed_stage_2", "DeepSpeed"),
    "ddp": ("ddp", "ddp_find_unused_parameters_true"),
    "fsdp": ("fsdp", "fsdp_cpu_offload"),
}
CLASSES = {
    "ddp": "DDPStrategy",
    "deepspeed": "DeepSpeedStrategy",
    "fsdp": "FSDPStrategy",
    "model_parallel": "ModelParallelStrategy",
    "xla": "XLAStrategy",
    "xla_fsdp": "XLAFSDPStrategy",
}
_NAMES: dict[str, tuple[tuple[tuple[str, str], ...], ...]] = {
    "single": ((("model", "optimizer"),), (("net", "opt"),), (("gpt", "sgd"),), (("my_model", "adam"),)),
    "pair": (
        (("actor", "actor_optimizer"), ("critic", "critic_optimizer")),
        (("first", "opt1"), ("second", "opt2")),
    ),
    "gan": (
        (("generator", "opt_g"), ("discriminator", "opt_d")),
        (("netG", "optimizerG"), ("netD", "optimizerD")),
    ),
    "triple": ((("a", "opt_a"), ("b", "opt_b"), ("c", "opt_c")),),
}
CODES: dict[str, tuple[str, ...]] = {
    "discard": ("FF101",),
    "discard_optimizer": ("FF101",),
    "discard_loader": ("FF101",),
    "stale": ("FF102",),
    "stale_call": ("FF102",),
    "stale_optimizer": ("FF102",),
    "stale_loader": ("FF102",),
    "unwrap": ("FF103",),
    "repeated": ("FF105",),
    "raw_backward": ("FF302",),
    "forward_outside": ("FF403",),
    "missing": ("FF104",),
    "misplaced": ("FF106", "FF205"),
    "split": ("FF201", "FF204"),
    "joint": ("FF202",),
    "early": ("FF203",),
    "no_model": ("FF301",),
    "strategy_sync": ("FF401",),
    "no_sync": ("FF402",),
    "bypass_setup": ("FF404", "FF104", "FF102"),
    "bypass_backward": ("FF404",),
}
"""The codes that name each kind of fault."""
SETUP_FAULTS = frozenset({"discard", "missing", "misplaced", "split", "joint", "early", "bypass_setup", "repeated"})
"""Faults of a model's set-up: one for each model, and what is wrong with its uses may wait for it."""

_OF_BACKWARD = frozenset({"no_model", "unwrap", "bypass_backward", "raw_backward", "missing", "stale"})
OF_SYNC = frozenset({"unwrap", "strategy_sync", "no_sync"})
"""Faults of a `no_backward_sync`: one for each model."""


@dataclass(frozen=True, order=True)
class Fault:
    """A kind of fault, and the model that it is planted at (-1: none)."""

    kind: str
    model: int = -1
    program: int = 0
    """Of the programs of a project, the one that has it."""

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of which one must name it."""
        return CODES[self.kind]


@dataclass(frozen=True)
class Slot:
    """The names of a model: of the raw and the wrapped one, and of its optimizer."""

    raw: str
    wrapped: str
    optimizer: str
    wrapped_optimizer: str
    scheduler: str
    stale: str
    """What the wrapped model is called where the fault is that the raw one goes on being used."""


@dataclass
class Plan:
    """All that is drawn for a program but its wording."""

    draw: Draw
    several_files: bool = False
    number: int = 0
    """Of the programs of a project, which one it is."""
    strategies: tuple[tuple[str, ...], ...] = _STRATEGIES
    """The strategies to choose from, by their families."""
    families: tuple[str, ...] = field(init=False)
    options: tuple[str, ...] = field(init=False)
    """The `--strategy` options that the tool gets."""

    def __post_init__(self) -> None:
        draw = self.draw
        self.families = draw.one("strategies", *self.strategies)
        self.source = draw.one("source", "literal", "literal", "object", "argparse", "variable", "option")
        if "auto" in self.families and self.source in ("object", "option"):
            self.source = "literal"
        if self.several_files and self.source == "option":  # it would hold for all programs of a project
            self.source = "literal"
        self.options = self.families if self.source == "option" else ()
        self.task = self._task()
        self.shape = self._shape()
        self.folds = self.shape in ("script", "main", "launch") and draw.chance("folds", 12)
        self.accumulates = "deepspeed" not in self.families and self.task != "gan" and draw.chance("accumulates", 45)
        self.style = self._style()
        self.slots = self._slots()

    def _task(self) -> str:
        return self.draw.one("task", "single", "single", "single", "pair", "gan", "gan", "triple")

    def _shape(self) -> str:
        if JOINT_ONLY & set(self.families) == {"xla"} or "xla_fsdp" in self.families or "xla" in self.families:
            return "launch"
        return self.draw.one("shape", "script", "main", "functions", "class", "closure", "steps", "launch", "builder")

    def _style(self) -> str:
        """How the right program sets up: jointly, the model first, or the optimizer's creation first."""
        families = set(self.families)
        if families & JOINT_ONLY:
            return "joint"
        if families & SEPARATE_ONLY:
            return "separate"
        if families & MODEL_FIRST:
            return self.draw.one("style", "joint", "separate")
        return self.draw.one("style", "joint", "separate", "late")

    def _slots(self) -> tuple[Slot, ...]:
        return tuple(
            self._slot(index, *names) for index, names in enumerate(self.draw.one("names", *_NAMES[self.task]))
        )

    def _slot(self, index: int, model: str, optimizer: str) -> Slot:
        draw, prefix = self.draw, "self." if self.shape == "class" else ""
        name = draw.one(f"wrapped {index}", model, model, model, f"wrapped_{model}", f"{model}_")
        other = draw.one(f"wrapped optimizer {index}", optimizer, optimizer, optimizer, optimizer, f"{optimizer}_ready")
        stale = draw.one(f"stale name {index}", f"{model}_ddp", f"fabric_{model}")
        names = (model, name, optimizer, other, f"scheduler_{index}" if index else "scheduler", stale)
        return Slot(*(prefix + name for name in names))

    @cached_property
    def needs_model(self) -> bool:
        """Whether `backward` has to be given the model."""
        return "deepspeed" in self.families and (len(self.slots) > 1 or self.folds)

    def has_pair(self, index: int) -> bool:
        """Whether a function makes the raw model together with its optimizer."""
        return self.several_files and self.style == "joint" and self.draw.chance(f"pair {index}", 15)

    def has_scheduler(self, index: int) -> bool:
        """Whether a model has a scheduler."""
        return self.draw.chance(f"scheduler {index}", 25)

    def spelled(self, family: str) -> str:
        """A strategy as a string for `Fabric`."""
        return self.draw.one(f"spelled {family}", *_SPELLINGS.get(family, (family,)))

    def faults(self) -> tuple[Fault, ...]:
        """One to three faults that this program can have."""
        left = [replace(fault, program=self.number) for fault in self._possible()]
        chosen: list[Fault] = []
        for number in range(self.draw.one("faults", 1, 1, 1, 2, 2, 3)):
            if left:
                kinds = sorted({fault.kind for fault in left})
                kind = self.draw.one(f"kind of fault {number}", *kinds)
                fault = self.draw.one(f"fault {number}", *[one for one in left if one.kind == kind])
                chosen.append(fault)
                left = [other for other in left if not _excludes(fault, other)]
        return tuple(chosen)

    def _possible(self) -> Iterator[Fault]:
        families = set(self.families)
        for loader_fault in ("discard_loader", "stale_loader"):
            yield Fault(loader_fault)
        for index, slot in enumerate(self.slots):
            yield Fault("missing", index)
            if slot.raw == slot.wrapped and slot.optimizer == slot.wrapped_optimizer:
                yield from (Fault(kind, index) for kind in ("discard", "repeated"))
            yield Fault("stale", index)
            yield from (Fault(kind, index) for kind in self._of_style(families, slot))
            if self.needs_model:
                yield Fault("no_model", index)
            if self.accumulates:
                yield from (Fault(kind, index) for kind in ("unwrap", "strategy_sync", "no_sync"))
                if families - {"auto", "xla"}:
                    yield Fault("forward_outside", index)
            elif self.needs_model:
                yield Fault("unwrap", index)
            if "deepspeed" not in families:
                yield Fault("bypass_backward", index)
            yield Fault("raw_backward", index)
            if slot.optimizer != slot.wrapped_optimizer:
                yield Fault("stale_optimizer", index)
            if self.has_scheduler(index) and self.style == "joint":
                yield Fault("misplaced", index)

    def _of_style(self, families: set[str], slot: Slot) -> Iterator[str]:
        if self.style == "joint" and families & JOINT_ONLY:
            yield "split"
        if self.style == "separate" and families & SEPARATE_ONLY:
            yield "joint"
        if self.style == "separate" and families & MODEL_FIRST:
            yield "early"
        if self.style != "joint":
            yield "bypass_setup"
            if slot.optimizer == slot.wrapped_optimizer:
                yield "discard_optimizer"


def _excludes(fault: Fault, other: Fault) -> bool:
    """Whether two faults cannot be planted together."""
    if fault == other or {fault.kind, other.kind} == {"discard_loader", "stale_loader"}:
        return True
    if {fault.kind, other.kind} == {"stale_optimizer", "raw_backward"}:  # a loop that is raw altogether is no fault
        return True
    if fault.model != other.model:
        return False
    kinds = {fault.kind, other.kind}
    if len(kinds & (SETUP_FAULTS | {"stale"})) == 2 or len(kinds & OF_SYNC) == 2:
        return True
    if len(kinds & {"stale_optimizer", "discard_optimizer"}) and len(kinds & SETUP_FAULTS):
        return True
    return len(kinds & _OF_BACKWARD) == 2
