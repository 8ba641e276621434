"""Generated programs that see much of the outside, in several tasks."""

from __future__ import annotations

from random import Random

_TOOLS = """
let tools = tool_define(tool_registry(), "look", "Looks", {
  parameters: {name: "string"},
  annotations: {kind: "read", side_effect_level: "read_only"},
  on_ambiguous: "retry",
  handler: { args ->
    println("looks for ${args.name}")
    exec("tool", args.name).stdout
  },
})
"""


class Program:
    """The program of a seed. Only one that is ``steady`` prints the same in every run: it doesn't sleep."""

    #: The fewest and the most that it has, beside those within others.
    statements = (2, 3)

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.steady = seed % 2 == 0
        self._names = 0
        body = "".join(self._statement(0) for _ in range(self._random.randint(*self.statements)))
        self.text = f'{_TOOLS}let ch = channel("c", 100)\n{body}println("end")\nreturn {{n: {seed}}}\n'

    def _name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    def _statement(self, depth: int) -> str:
        kinds = [self._say, self._ask, self._ask, self._look, self._file, self._run, self._channel]
        if depth < 2:
            kinds += [self._agent, self._parallel, self._parallel, self._spawn, self._loop, self._try]
        if not self.steady:
            kinds += [self._sleep, self._sleep, self._limit, self._more]
        return self._random.choice(kinds)(depth)

    def _block(self, depth: int) -> str:
        return "".join(self._statement(depth + 1) for _ in range(self._random.randint(1, 2)))

    def _say(self, depth: int) -> str:
        text = self._name("say")
        return f'println("{text}")\n' if self._random.random() < 0.8 else f'eprintln("{text}")\n'

    def _ask(self, depth: int) -> str:
        name, fails = self._name("r"), " fail" if self._random.random() < 0.15 else ""
        call = f'llm_call("{name}{fails}", nil, {{provider: "p", model: "m", llm_retries: 0}}).text'
        if fails:
            return f'try {{ println({call}) }} catch (e) {{ println("no {name}: ${{e}}") }}\n'
        return f'let {name} = {call}\nprintln("{name} ${{{name}}}")\n'

    def _agent(self, depth: int) -> str:
        name = self._name("g")
        options = '{provider: "p", model: "m", tool_format: "native", tools: tools, max_iterations: 3}'
        return f'println("{name} ${{agent_loop("{name}", nil, {options}).text}}")\n'

    def _look(self, depth: int) -> str:
        looks = ("now_ms()", "random_int(1, 9)", 'env_or("LANG", "")', "len(uuid())", "len(cwd()) > 0")
        return f'println("${{{self._random.choice(looks)}}}")\n'

    def _file(self, depth: int) -> str:
        name = self._name("f")
        if self._random.random() < 0.2:
            return f'try {{ read_file("{name}") }} catch (e) {{ println("no {name}") }}\n'
        return (
            f'write_file("{name}", "text of {name}")\nprintln(read_file("{name}"))\n'
            f'println("${{list_dir(".").contains("{name}")}}")\n'
        )

    def _run(self, depth: int) -> str:
        return f'println(exec("tool", "{self._name("x")}").stdout)\n'

    def _channel(self, depth: int) -> str:
        name = self._name("m")
        return f'send(ch, "{name}")\nprintln("got ${{receive(ch)}}")\n'

    def _sleep(self, depth: int) -> str:
        return f'sleep({self._random.randint(1, 4)}ms)\nprintln("{self._name("woke")}")\n'

    def _limit(self, depth: int) -> str:
        name = self._name("d")
        wait = (
            f'llm_call("{name}", nil, {{provider: "p", model: "m"}})' if self._random.random() < 0.3 else ""
        )
        return (
            f"try {{ deadline {self._random.randint(1, 3)}ms {{ {wait}\nsleep(1h) }} }} catch (e) "
            f'{{ println("{name} ${{e}}") }}\n'
        )

    def _more(self, depth: int) -> str:
        name = self._name("a")
        return f'append_file("log", "{name}\\n")\nprintln(read_file("log"))\n'

    def _parallel(self, depth: int) -> str:
        item = self._name("i")
        count = self._random.randint(2, 3)
        inner = self._name("p")
        ask = f'llm_call("{inner} ${{{item}}}", nil, {{provider: "p", model: "m"}}).text'
        return (
            f"let {inner} = parallel each {list(range(count))} {{ {item} ->\n{self._block(depth)}{ask}\n}}\n"
            f'println("{inner} ${{{inner}}}")\n'
        )

    def _spawn(self, depth: int) -> str:
        one, two = self._name("t"), self._name("t")
        return (
            f'let {one} = spawn {{\n{self._block(depth)}"one"\n}}\n'
            f'let {two} = spawn {{\n{self._block(depth)}"two"\n}}\n'
            f'println("${{await({two})}} ${{await({one})}}")\n'
        )

    def _loop(self, depth: int) -> str:
        return f"for n in 1 to 2 {{\n{self._block(depth)}}}\n"

    def _try(self, depth: int) -> str:
        body = f'{self._block(depth)}throw "{self._name("oh")}"\n'
        return f'try {{\n{body}}} catch (e) {{ println("caught ${{e}}") }}\n'
