"""Put the forward under `no_backward_sync`, with its backward.

What is wrong
    `no_backward_sync` spares the synchronisation of gradients while they are accumulated. The forward decides whether
    the backward after it synchronises: with the backward alone inside there is no error, and under DDP every one of
    them still synchronises.

Fix
        loss = criterion(model(x), y)                      with fabric.no_backward_sync(model, enabled=accumulating):
        with fabric.no_backward_sync(                ->        loss = criterion(model(x), y)
            model, enabled=accumulating                        fabric.backward(loss)
        ):
            fabric.backward(loss)

    The statements from the forward to the block move in, in their order; nothing else moves.

Safety
    Safe when all of these statements belong to the loss or use what it is made of, the block's condition depends on
    none of them, and not every backward is followed by a step (then nothing would synchronise at all). Unsafe when no
    step is seen. No fix otherwise, or when the forward stands in another block or function, the `with` statement enters
    something else as well, or comments and texts over several lines would have to be moved.

Fires only where Fabric's strategy can be one that synchronises in the backward (DDP, FSDP, model parallel, XLA FSDP) or
is not known: the call itself says that several devices are meant. Silent for one device, DeepSpeed and XLA.

Read in `lightning/fabric/fabric.py` (`no_backward_sync`) and `torch/nn/parallel/distributed.py` (`_pre_forward`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fabric_fix.analysis import known
from fabric_fix.analysis.events import Backward, NoSync, Use
from fabric_fix.analysis.frames import Frame
from fabric_fix.analysis.objects import Const, FabricObj, Inside, Obj, Wrapped
from fabric_fix.analysis.places import spelled
from fabric_fix.analysis.program import Program
from fabric_fix.edits.model import Edit, InsertStatement, RemoveStatement, Where
from fabric_fix.finding import Finding, Span
from fabric_fix.records import Record
from fabric_fix.rule import Rule
from fabric_fix.scopes import caller_line, statement_in
from fabric_fix.segments import lines_of, segment
from fabric_fix.trial import Trial

_SYNCHRONISING = frozenset({"ddp", "fsdp", "fsdp_original_params", "model_parallel", "xla_fsdp", "unknown", "own"})
"""Families whose strategy has a `_backward_sync_control`, or can have one."""
_NOT_MOVED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)
_ORDERED = frozenset({"backward", "step", "no_backward_sync", "no_sync", "setup", "setup_module", "clip_gradients"})
"""Methods whose place among forward and backward matters."""


class Split(Record):
    """A backward in a `with` block whose forward stands outside."""

    block: ast.With
    backward: ast.Call
    forward: ast.stmt
    """The statement of the forward; of several, the first."""
    chain: frozenset[ast.stmt]
    """The statements outside that make what the loss is computed from."""


class ForwardOutsideSync(Rule):
    """Only the backward stands under `no_backward_sync`."""

    code = "FF403"
    name = "forward-outside-sync"
    by_hand = "put the forward into the block by hand"

    def check(self, program: Program) -> Iterator[Finding]:
        """Find `no_backward_sync` blocks without the forward of their backward."""
        for node, events in program.own(program.no_syncs()).items():
            block = _block_of(program, node)
            if block is None or events[0].via != "fabric" or not any(_synchronises(event) for event in events):
                continue
            splits = {event: _split(program, event, block) for event in events}
            found = [split for event, split in splits.items() if split is not None and _synchronises(event)]
            if found:
                other = next((event for event, split in splits.items() if split is None), None)
                yield self._judge(program, node, found[0], other)

    def _judge(self, program: Program, node: ast.Call, split: Split, other: NoSync | None) -> Finding:
        """`other` is the call in a context where the forward is not seen to stand outside."""
        message = "only the backward stands under `no_backward_sync`: gradients are synchronised all the same"
        problem = _problem(program, node, split)
        if problem is None and other is not None:
            giver = caller_line(other)
            whose = "another call" if giver is None else f"line {giver}"
            problem = f"{whose} runs it with another model or loss: see that the forward can move in for that, too"
        if problem is not None:
            return self.report(program, node, message, problem)
        moved = _moved(program, split)
        edits: list[Edit] = []
        for statement in moved:
            code = _code(program, statement)
            if code is None:
                reason = "comments or texts over several lines would have to be moved: move the forward in by hand"
                return self.report(program, node, message, reason)
            edits.append(RemoveStatement(Span.of(statement)))
            edits.append(InsertStatement(Span.of(split.block.body[0]), Where.BEFORE, code))
        failure = Trial(program, edits).failure()
        if failure is not None:
            return self.report(program, node, message, failure)
        stepped = all(backward.steps for backward in program.backwards()[split.backward])
        doubts = [] if stepped else ["the source does not show when an optimizer steps after it"]
        return self.fixed(program, node, message, "Move the forward in", edits, doubts)


def _block_of(program: Program, node: ast.Call) -> ast.With | None:
    """The `with` statement that enters a context."""
    statement = program.syntax.statement(node)
    if not isinstance(statement, ast.With):
        return None
    heads = [item.context_expr for item in statement.items]
    return statement if any(node in ast.walk(head) for head in heads) else None


def _synchronises(event: NoSync) -> bool:
    """Whether the strategy can be one that synchronises gradients in the backward.

    "auto" is DDP on several devices; beside another strategy (`DeepSpeedStrategy() if devices > 1 else "auto"`) it is
    the one for a single device.
    """
    if event.strategies & _SYNCHRONISING:
        return True
    return event.strategies == {"auto"} and not all(_one_device(fabric) for fabric in event.fabrics)


def _one_device(fabric: FabricObj) -> bool:
    """Whether a Fabric is made for one device: `Fabric(devices=1)`, on one node."""
    keywords = fabric.node.keywords if fabric.made and isinstance(fabric.node, ast.Call) else []
    given = {keyword.arg: keyword.value for keyword in keywords}
    devices = given.get("devices")
    return isinstance(devices, ast.Constant) and devices.value in (1, "1") and not {"num_nodes", None} & set(given)


# --- where forward and backward stand ---------------------------------------------------------------------------------


def _split(program: Program, event: NoSync, block: ast.With) -> Split | None:
    """The backward of the block whose forward surely stands outside, or None."""
    argument = event.argument("module", 0)
    modules = {obj for obj in (argument.value if argument is not None else ()) if isinstance(obj, Wrapped)}
    if not modules or argument is None or any(not isinstance(obj, (Wrapped, Const)) for obj in argument.value):
        return None
    forwards = _forwards(program, modules, event.frame)
    for node, backwards in program.backwards().items():
        if not block.lineno <= node.lineno <= (block.end_lineno or block.lineno):
            continue
        index = program.syntax.in_block(node, block.body)
        here = [backward for backward in backwards if backward.frame is event.frame]
        if index is not None and here and all(_depends(backward, modules) for backward in here):
            found = _trace(program, block, index, node, forwards)
            if found is not None:
                return found
    return None


def _depends(backward: Backward, modules: set[Wrapped]) -> bool:
    return bool({obj for obj in backward.deps if isinstance(obj, Wrapped)} & modules)


def _forwards(program: Program, modules: set[Wrapped], frame: Frame) -> set[ast.stmt]:
    """The statements of a frame during which one of the models can run, in functions that they call as well."""
    known = program.once(_known_forwards)
    key = (frozenset(modules), frame)
    if key not in known:
        uses = [use for use in program.uses() if _runs_one(use, modules)]
        statements = (statement_in(use.frame, use.stmt, frame) for use in uses)
        known[key] = {statement for statement in statements if statement is not None}
    return known[key]


def _known_forwards(program: Program) -> dict[tuple[frozenset[Wrapped], Frame], set[ast.stmt]]:
    return {}


def _runs_one(use: Use, modules: set[Wrapped]) -> bool:
    """Whether a use can be a forward of one of some models."""
    obj: Obj = use.obj.wrapped if isinstance(use.obj, Inside) else use.obj
    return obj in modules and use.grad and _can_run(use)


def _can_run(use: Use) -> bool:
    """Whether a use can be a forward: a call, a method that is not known to be none, a function that gets the model."""
    steps = use.detail.endswith("_step")
    return use.kind in ("call", "pass") or (
        use.kind == "method" and (steps or use.detail not in known.HARMLESS_METHODS)
    )


def _trace(program: Program, block: ast.With, index: int, backward: ast.Call, forwards: set[ast.stmt]) -> Split | None:
    """Follow the loss of a backward to the forward that it comes from; None when that one stands inside."""
    needed = {text for argument in backward.args[:1] for text in _reads(argument)}
    if _runs(program, block.body[index], forwards):
        return None
    for statement in reversed(block.body[:index]):
        if _stores(statement) & needed:
            if _runs(program, statement, forwards) or not isinstance(statement, (ast.Assign, ast.AnnAssign)):
                return None
            needed |= _reads(statement)
    forward: ast.stmt | None = None
    chain: set[ast.stmt] = set()
    at: ast.stmt = block
    while forward is None:
        siblings = program.syntax.block(at)
        for statement in reversed(siblings[: siblings.index(at)]):
            stored, read = _touched(program, statement)
            if stored & needed:
                needed |= read
                chain.add(statement)
                forward = statement if _runs(program, statement, forwards) else forward
        parent = program.syntax.parents[at]
        if not isinstance(parent, (ast.If, ast.With, ast.Try)):
            break
        at = parent
    return None if forward is None else Split(block, backward, forward, frozenset(chain))


def _runs(program: Program, statement: ast.stmt, forwards: set[ast.stmt]) -> bool:
    """Whether a forward happens in a statement."""
    return any(part in forwards for part in ast.walk(statement) if isinstance(part, ast.stmt))


def _touched(program: Program, statement: ast.stmt) -> tuple[frozenset[str], frozenset[str]]:
    """The places that a statement stores and those that it reads, listed once."""
    known = program.once(_known_places)
    if statement not in known:
        known[statement] = (_stores(statement), _reads(statement))
    return known[statement]


def _known_places(program: Program) -> dict[ast.stmt, tuple[frozenset[str], frozenset[str]]]:
    return {}


def _reads(node: ast.AST) -> frozenset[str]:
    """The places that a node reads."""
    found: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(part.ctx, ast.Load):
            text = spelled(part)
            if text is not None:
                found.add(text)
    return frozenset(found)


def _stores(statement: ast.stmt) -> frozenset[str]:
    """The places that a statement gives something to; with an item or attribute also what it belongs to."""
    found: set[str] = set()
    for part in ast.walk(statement):
        node: ast.expr | None = None
        if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(part.ctx, (ast.Store, ast.Del)):
            node = part
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            node = part.func.value if part.func.attr in ("append", "extend", "update", "add") else None
        while node is not None:
            found |= {text} if (text := spelled(node)) else set()
            node = node.value if isinstance(node, (ast.Attribute, ast.Subscript)) else None
    return frozenset(found - {"self"})


# --- what has to hold for a move --------------------------------------------------------------------------------------


def _moved(program: Program, split: Split) -> list[ast.stmt]:
    siblings = program.syntax.block(split.block)
    return siblings[siblings.index(split.forward) : siblings.index(split.block)]


def _problem(program: Program, node: ast.Call, split: Split) -> str | None:
    """Why the forward cannot certainly move in, or None."""
    line = split.forward.lineno
    if split.forward not in program.syntax.block(split.block):
        return f"the forward on line {line} stands in another block: put forward and backward both inside"
    if len(split.block.items) > 1 or split.block.items[0].optional_vars is not None:
        return "the statement enters other contexts as well: put the forward inside by hand, if they allow it"
    moved = _moved(program, split)
    made: set[str] = set()
    for statement in moved:
        problem = _statement_problem(statement, split, made)
        if problem is not None:
            return problem
        made |= _stores(statement)
    changed = _reads(split.block.items[0].context_expr) & made
    if changed:
        return f"`{min(changed)}`, which the block's head reads, is made by the forward: move the forward by hand"
    return _step_problem(program, node, split.block)


def _statement_problem(statement: ast.stmt, split: Split, made: set[str]) -> str | None:
    """Why one of the statements from the forward to the block cannot move."""
    line = statement.lineno
    for part in ast.walk(statement):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _ORDERED:
            return f"`{part.func.attr}` on line {line} stands between forward and backward: move the forward by hand"
        if isinstance(part, (ast.Yield, ast.YieldFrom, ast.Return, ast.Break, ast.Continue, *_NOT_MOVED)):
            return f"line {line} stands between forward and backward and cannot move: move the forward by hand"
    if statement in split.chain or _reads(statement) & made:
        return None
    return f"line {line} stands between forward and backward and belongs to neither: move the forward by hand"


def _step_problem(program: Program, node: ast.Call, block: ast.With) -> str | None:
    """Why a forward inside could leave the gradients unsynchronised: nothing says that a later backward is not so."""
    guarded = _enabled(program, node) or _in_branch(program, block)
    frames = {event.frame for event in program.no_syncs()[node]}
    unseen = None if guarded else "the source does not show that a later backward synchronises: pass `enabled=`"
    at: ast.stmt = block
    while True:
        siblings = program.syntax.block(at)
        for statement in siblings[siblings.index(at) + 1 :]:
            if _steps(program, statement, frames):
                after = f"a step follows each backward (line {statement.lineno})"
                return f"{after}: take `no_backward_sync` away, or step less often"
            if _can_leave(statement):
                return unseen
        parent = program.syntax.parents[at]
        if not isinstance(parent, (ast.If, ast.With, ast.Try)):
            return unseen
        at = parent


def _can_leave(statement: ast.stmt) -> bool:
    """Whether what stands below a statement is not always reached."""
    leaving = (ast.Continue, ast.Break, ast.Return, ast.Raise)
    if isinstance(statement, ast.If):
        return any(isinstance(inner, leaving) for inner in (*statement.body, *statement.orelse))
    return isinstance(statement, leaving)


def _in_branch(program: Program, block: ast.With) -> bool:
    """Whether a condition of the same function and turn decides whether the block runs."""
    for outer in program.syntax.ancestors(block):
        if isinstance(outer, ast.If):
            return True
        if not isinstance(outer, (ast.With, ast.Try)):
            return False
    return False


def _enabled(program: Program, node: ast.Call) -> bool:
    """Whether the call says when it is to hold, or an expression around it chooses another context."""
    values = [*node.args[1:2], *(keyword.value for keyword in node.keywords if keyword.arg == "enabled")]
    chosen = isinstance(program.syntax.parents[node], ast.IfExp)
    return chosen or any(not isinstance(value, ast.Constant) for value in values)


def _steps(program: Program, statement: ast.stmt, frames: set[Frame]) -> bool:
    """Whether an optimizer steps whenever a statement runs, in functions that it calls as well."""
    if isinstance(statement, ast.With):
        return any(_steps(program, inner, frames) for inner in statement.body)
    if not _is_simple(statement):
        return False
    for steps in program.steps().values():
        for step in steps:
            at: ast.stmt | None = step.stmt
            frame: Frame | None = step.frame
            while frame is not None and frame not in frames and at is not None and _always(program, at):
                at, frame = frame.call_stmt, frame.caller
            if at is statement and frame in frames:
                return True
    return False


def _always(program: Program, statement: ast.stmt) -> bool:
    """Whether a statement runs whenever its function does, as far as its place goes."""
    parent = program.syntax.parents[statement]
    while isinstance(parent, (ast.With, ast.Try)):
        parent = program.syntax.parents[parent]
    return isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef))


def _is_simple(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign))


def _code(program: Program, statement: ast.stmt) -> str | None:
    """A statement's source without its indentation; None where comments or texts over several lines go with it."""
    last = lines_of(program).line(statement.end_lineno or 1)
    behind = last.encode()[statement.end_col_offset or 0 :].decode()
    text = segment(program, statement)
    if "#" in behind:
        return None
    if "\n" not in text and "\r" not in text:
        return text
    long = any(
        isinstance(part, (ast.Constant, ast.JoinedStr)) and part.end_lineno != part.lineno
        for part in ast.walk(statement)
    )
    if long or "#" in text or "\\\n" in text:
        return None
    first, *rest = text.splitlines(keepends=True)
    indent = statement.col_offset
    return first + "".join(line[indent:] if not line[:indent].strip() else line for line in rest)
