"""Tasks whose order is fixed: they wait for each other, for channels and for different times only."""

from __future__ import annotations

from tests.vm.differential.functions import Functions
from tests.vm.differential.scopes import Makers
from tests.vm.differential.shapes import ANY, INT, Shape, list_of


class Concurrency(Functions):
    def more_kinds(self) -> Makers:
        return [
            *super().more_kinds(),
            (3, self.task_declaration),
            (2, self.channel_loop),
            (1, self.select_statement),
            (1, self.passing_deadline),
            *([(2, self.sleeping)] if self.body.kind == "task" else []),
        ]

    def more_makers(self, shape: Shape, depth: int) -> Makers:
        makers = super().more_makers(shape, depth)
        tasks = [v.name for v in self.scopes[-1].values() if v.shape == Shape("task", shape)]
        if tasks:
            makers.append((12, lambda: f"(await({self.choices.pick(tasks)}) ?? {self.literal(shape)})"))
        if shape.kind == "list" and self.affordable(20):
            makers.append((6, lambda: self.parallel(shape, depth)))
        if shape is INT:
            makers.append((1, lambda: self.settled(depth)))
        return makers

    def task_declaration(self) -> str:
        if self.left <= 0:
            return self.show()
        shape, name = self.any_shape(1), self.numbered("t")
        text = f"let {name} = {self.spawned(shape, 2)}"
        self.declare(name, Shape("task", shape))
        return text

    def sleeping(self) -> str:
        return f"sleep({self.choices.pick((10, 20, 5))}ms)"

    def parallel(self, shape: Shape, depth: int) -> str:
        assert shape.item
        cap = " with { max_concurrent: 2 }" if self.choices.chance(20) else ""
        if self.choices.chance(50):
            body, name = self._parallel_body(shape.item, INT, depth)
            return f"(parallel 3{cap} {{ {name} ->\n{body}\n}})"
        source = self.any_shape(1)
        values = self.expression(list_of(source), depth)
        body, name = self._parallel_body(shape.item, source, depth)
        return f"(parallel each {values}[:3]{cap} {{ {name} ->\n{body}\n}})"

    def _parallel_body(self, shape: Shape, item: Shape, depth: int) -> tuple[str, str]:
        with self.function("task", shape) as task:
            self.declare(name := self.fresh(), item)
            before = self.statements(self.choices.below(3)) if depth > 0 else ""
            text = before + self.expression(shape, depth)
        self.spend((task.cost + 1) * 3)
        return text, name

    def settled(self, depth: int) -> str:
        body, name = self._parallel_body(ANY, INT, depth)
        count = self.choices.pick(("succeeded", "failed"))
        return f"(parallel settle [1, 2, 3] {{ {name} ->\n{body}\n}}).{count}"

    def channel_loop(self) -> str:
        """A task that sends, and a loop that receives until the channel is closed."""
        turns = self.turns(3)
        if turns < 2 or self.left <= 0:
            return self.show()
        channel, task, size = self.numbered("h"), self.numbered("t"), self.choices.pick((1, 2, 5))
        with self.function("task") as sender:
            sender.bound = True
            with self.loop(turns), self.scope():
                self.declare(item := self.fresh(), INT, mutable=True)
                sent = f"{self.statements(self.choices.below(2))}send({channel}, {self.guarded(INT, 2)})\n"
        self.spend(sender.cost)
        with self.loop(turns), self.scope():
            bound, self.body.bound = self.body.bound, True
            self.declare(got := self.fresh(), INT, mutable=True)
            body = self.statements(1 + self.choices.below(2))
            self.body.bound = bound
        return (
            f'let {channel} = channel("c", {size})\n'
            f"let {task} = spawn {{\ntry {{\nfor {item} in range({turns}) {{\n{sent}}}\n}} catch (err) {{\n"
            f"println(err)\n}} finally {{ close_channel({channel}) }}\n{self.literal(INT)}\n}}\n"
            f"for {got} in {channel} {{\n{body}}}\nprintln(await({task}))"
        )

    def select_statement(self) -> str:
        channel = self.numbered("h")
        filled = f"send({channel}, {self.guarded(self.any_shape(1), 2)})\n" if self.choices.chance(70) else ""
        with self.scope():
            self.declare(got := self.fresh(), ANY)
            body = self.statements(1)
        other = self.choices.pick(("default", "timeout 10ms"))
        return (
            f'let {channel} = channel("s", 2)\n{filled}'
            f"select {{\n{got} from {channel} {{\n{body}}}\n{other} {self.inner_block(1)}\n}}"
        )

    def passing_deadline(self) -> str:
        """A deadline that passes while the program sleeps."""
        with self.scope():
            before, after = self.statements(1), self.statements(1)
        self.risky = True
        return f"deadline 30ms {{\n{before}sleep({self.choices.pick((10, 50))}ms)\n{after}}}"
