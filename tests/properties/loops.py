"""The training loop of a program, with the faults that are planted in it."""

from __future__ import annotations

from tests.properties.sections import Lines, Scope, Sections, indented


class Loops(Sections):
    """Writes loops."""

    def loss(self, index: int, scope: Scope, name: str) -> Lines:
        """The statements that compute the loss of a model."""
        model = self.model(index, "call", scope)
        form = self.draw.one(f"loss {index}", "inline", "two", "criterion", "helper", "keyword")
        if form == "two":
            return [f"pred = {model}(x)", f"{name} = F.mse_loss(pred, y)"]
        code = {
            "inline": f"F.mse_loss({model}(x), y)",
            "criterion": f"nn.MSELoss()({model}(x), y)",
            "helper": f"compute_loss({model}, x, y)",
            "keyword": f"(({model}(x) - y) ** 2).mean()",
        }[form]
        return [f"{name} = {code}"]

    def backward(self, index: int, scope: Scope, loss: str) -> Lines:
        """The backward of a model's loss."""
        loss = self.draw.one(f"scaled {index}", loss, loss, f"{loss} / 2")
        if self.has("bypass_backward", index):
            return [f"{scope.fabric}.strategy.backward({loss}, {self.model(index, 'backward', scope)})"]
        if self.has("raw_backward", index):
            return [f"({loss}).backward()" if " " in loss else f"{loss}.backward()"]
        needed = self.plan.needs_model and not self.has("no_model", index)
        extra = self.draw.chance(f"model given {index}", 20)
        if needed or (extra and not self.plan.needs_model):
            return [f"{scope.fabric}.backward({loss}, model={self.model(index, 'backward', scope)})"]
        return [f"{scope.fabric}.backward({loss})"]

    def step(self, index: int, scope: Scope) -> Lines:
        """Clipping, the step, and the scheduler's."""
        optimizer, lines = self.optimizer(index, scope), []
        if "deepspeed" not in self.plan.families and self.draw.chance(f"clips {index}", 20):
            model = self.model(index, "clip", scope)
            lines.append(f"{scope.fabric}.clip_gradients({model}, {optimizer}, max_norm=1.0)")
        lines.append(f"{optimizer}.step()")
        if self.plan.has_scheduler(index) and scope.models is None:
            lines.append(f"{self.plan.slots[index].scheduler}.step()")
        return lines

    def one_model(self, index: int, scope: Scope) -> Lines:
        """The work of one batch on one model."""
        name = "loss" if len(self.plan.slots) == 1 else f"loss_{index}"
        keep = f"{scope.losses}.append({name}.item())"
        work = [*self.loss(index, scope, name), *self.backward(index, scope, name)]
        zero = f"{self.optimizer(index, scope)}.zero_grad()"
        if not self.plan.accumulates:
            return [zero, *work, *self.step(index, scope), keep]
        step = [*self.step(index, scope), zero]
        plain = self.has("no_sync", index) or self.draw.one(f"accumulation {index}", "enabled", "branches") != "enabled"
        if plain:
            blocked = self._blocked(index, scope, "", work)
            return ["if waiting:", *indented(blocked), "else:", *indented([*work, *step]), keep]
        blocked = self._blocked(index, scope, "waiting", work)
        return [*blocked, "if not waiting:", *indented(step), keep]

    def _blocked(self, index: int, scope: Scope, enabled: str, work: Lines) -> Lines:
        """The work of a batch with the synchronisation blocked."""
        outside = len(work) - 1 if self.has("forward_outside", index) else 0
        return [*work[:outside], self._sync(index, scope, enabled), *indented(work[outside:])]

    def _sync(self, index: int, scope: Scope, enabled: str) -> str:
        model = self.model(index, "sync", scope)
        if self.has("no_sync", index):
            return f"with {model}.no_sync():"
        owner = scope.fabric
        if self.has("strategy_sync", index):
            owner += self.draw.one(f"control {index}", ".strategy", ".strategy._backward_sync_control")
        given = self.draw.one(f"enabled {index}", f", enabled={enabled}", f", {enabled}") if enabled else ""
        return f"with {owner}.no_backward_sync({model}{given}):"

    def gan(self, scope: Scope) -> Lines:
        """The work of one batch of a GAN."""
        made, judge = self.model(0, "call", scope), self.model(1, "call", scope)
        opt_g, opt_d = self.optimizer(0, scope), self.optimizer(1, scope)
        bce = "F.binary_cross_entropy_with_logits"
        ones = "torch.ones(len(x), 1)"
        fake = [f"fake = {made}(torch.randn(len(x), 4))"]
        real = [f"loss_d = {bce}({judge}(x), {ones}) + {bce}({judge}(fake.detach()), torch.zeros(len(x), 1))"]
        first = [f"{opt_d}.zero_grad()", *real, *self.backward(1, scope, "loss_d"), *self.step(1, scope)]
        second = [f"{opt_g}.zero_grad()", f"loss_g = {bce}({judge}(fake), {ones})"]
        second += [*self.backward(0, scope, "loss_g"), *self.step(0, scope)]
        return [*fake, *first, *second, f"{scope.losses}.append(loss_g.item())"]

    def body(self, scope: Scope) -> Lines:
        """The work of one batch."""
        if self.plan.task == "gan":
            return self.gan(scope)
        parts = [self.one_model(index, scope) for index in range(len(self.plan.slots))]
        return [line for part in parts for line in part]

    def loop(self, scope: Scope, body: Lines) -> Lines:
        """The loop over batches."""
        if self.plan.accumulates:
            turns = [f"for i, (x, y) in enumerate({scope.loader}):", *indented(["waiting = i % 2 == 0", *body])]
        else:
            turns = [f"for x, y in {scope.loader}:", *indented(body)]
        form = self.draw.one("loop", "once", "epochs", "while")
        if form == "epochs":
            return ["for epoch in range(2):", *indented(turns)]
        if form == "while":
            return ["epoch = 0", "while epoch < 2:", *indented([*turns, "epoch += 1"])]
        return turns

    def ending(self, scope: Scope) -> Lines:
        """What follows on the training: an evaluation, a checkpoint, the losses."""
        lines: Lines = []
        index = 0
        if self.draw.chance("evaluates", 20) and scope.models is None:
            model = self.model(index, "clip", scope)
            lines += [f"{model}.eval()", "with torch.no_grad():", f"    {model}(torch.ones(2, 4))"]
        if self.draw.chance("saves", 15) and scope.models is None:
            model = self.model(index, "clip", scope)
            lines.append(f'{scope.fabric}.save("last.ckpt", {{"model": {model}, "step": 3}})')
        return [*lines, f'print("losses:", *[f"{{value:.6f}}" for value in {scope.losses}])']
