"""Generated programs for tapes: those of durable runs, and what only tapes have."""

from __future__ import annotations

from tests.durable.generated import Program

_MODEL = 'provider: "p", model: "m", llm_retries: 0'


class TapedProgram(Program):
    """The program of a seed, none of which prints the same in every run."""

    statements = (4, 7)

    def _statement(self, depth: int) -> str:
        if self._random.random() < 0.5:
            return super()._statement(depth)
        kinds = [
            self._stream, self._stream, self._watched, self._compute, self._chance, self._variable, self._log,
            self._conversation, self._conversation, self._fetch, self._line, self._person,
            self._clocks, self._fails,
        ]  # fmt: skip
        if depth < 2:
            kinds += [self._sub_agent, self._worker, self._line_of_tasks, self._remembered]
        return self._random.choice(kinds)(depth)

    def _stream(self, depth: int) -> str:
        name, ends = self._name("s"), "break" if self._random.random() < 0.3 else ""
        fails = " fail" if self._random.random() < 0.15 else ""
        return (
            f'for piece in llm_stream("{name} in pieces{fails}", nil, {{{_MODEL}}}) '
            f'{{ println("{name} <${{piece}}>")\n{ends} }}\n'
        )

    def _watched(self, depth: int) -> str:
        name = self._name("w")
        options = f'{_MODEL}, on_chunk: {{ c -> println("{name} [${{c.text}}]") }}'
        tools = (
            ', tool_format: "native", tools: tools, max_iterations: 3' if self._random.random() < 0.5 else ""
        )
        return f'println("{name} ${{agent_loop("{name}", nil, {{{options}{tools}}}).text}}")\n'

    def _compute(self, depth: int) -> str:
        """How far a computation gets until its deadline depends on the machine."""
        name = self._name("n")
        return (
            f"var {name} = 0\ntry {{ deadline {self._random.randint(1, 4)}ms {{ while true "
            f'{{ {name} = {name} + 1 }} }} }} catch (e) {{ println("{name} ${{{name}}} ${{e}}") }}\n'
        )

    def _chance(self, depth: int) -> str:
        chances = ("random()", "random_choice([1, 2, 3])", "random_shuffle([1, 2, 3, 4])", "uuid_v7()")
        return f'println("${{{self._random.choice(chances)}}}")\n'

    def _variable(self, depth: int) -> str:
        variables = ('env("HOME")', 'env_or("TAPED", "none")', 'env("API_KEY") != nil', "platform()")
        return f'println("${{{self._random.choice(variables)}}}")\n'

    def _log(self, depth: int) -> str:
        name, place = self._name("l"), self._random.choice(("log.txt", "dir/log.txt"))
        return (
            f'mkdir("dir")\nappend_file("{place}", "{name}\\n")\nprintln("${{len(read_lines("{place}"))}}")\n'
            f'copy_file("{place}", "{name}.txt")\nmove_file("{name}.txt", "dir/{name}.txt")\n'
            f'println("${{list_dir("dir")}}")\ndelete_file("dir/{name}.txt")\n'
        )

    def _conversation(self, depth: int) -> str:
        name, which = self._name("c"), self._random.choice("ab")
        store = self._random.choice(("sqlite:sessions.db", "jsonl:sessions", "memory:"))
        fork = f'\nprintln(agent_session_fork({name}, "{name}-fork"))' if self._random.random() < 0.3 else ""
        return (
            f'let {name} = agent_session_open("{which}-{store[0]}", {{store: "{store}"}})\n'
            f'agent_session_inject({name}, {{role: "user", content: "{name}"}})\n'
            f'println("${{agent_session_snapshot({name})?.messages}}"){fork}\n'
        )

    def _remembered(self, depth: int) -> str:
        name, which = self._name("g"), self._random.choice("ab")
        return (
            f'let {name} = agent_session_open("loop-{which}", {{store: "sqlite:sessions.db"}})\n'
            f'try {{ println(agent_loop("{name}", nil, {{{_MODEL}, session_id: {name}, tools: tools, '
            f'tool_format: "native", max_iterations: 3}}).text) }} catch (e) {{ println("{name} ${{e}}") }}\n'
            f'println("${{agent_session_length({name})}}")\n'
        )

    def _fetch(self, depth: int) -> str:
        name, fails = self._name("h"), "refuse" if self._random.random() < 0.2 else "get"
        method = self._random.choice(("get", "post"))
        call = f'http_{method}("http://service.test/{fails}/{name}", "{name}").body'
        return f'try {{ println({call}) }} catch (e) {{ println("no {name} ${{e}}") }}\n'

    def _line(self, depth: int) -> str:
        return 'println("read ${read_line()}")\n'

    def _person(self, depth: int) -> str:
        return f'println(ask_user("{self._name("q")}"))\n'

    def _clocks(self, depth: int) -> str:
        name = self._name("k")
        return (
            f'let {name} = timer_start()\nprintln("${{monotonic_ms()}} ${{elapsed()}} ${{timestamp()}}")\n'
            f"timer_end({name})\n"
        )

    def _fails(self, depth: int) -> str:
        name = self._name("x")
        return f'println("${{exec("tool", "fail {name}")}}")\n'

    def _sub_agent(self, depth: int) -> str:
        name = self._name("u")
        return (
            f'println("${{sub_agent_run("{name}", {{{_MODEL}, tools: tools, tool_format: "native", '
            f'max_iterations: 3}})?.summary}}")\n'
        )

    def _worker(self, depth: int) -> str:
        name = self._name("v")
        node = self._random.choice(('kind: "subagent"', 'kind: "stage"'))
        options = f'{{task: "{name}", node: {{{node}, model_policy: {{provider: "p", model: "m"}}}}}}'
        inner = self._block(depth)
        return f'let {name} = spawn_agent({options})\n{inner}println("${{wait_agent({name})?.status}}")\n'

    def _line_of_tasks(self, depth: int) -> str:
        """Tasks that give to a channel, in whatever order they come to it."""
        line, each = self._name("ch"), self._name("e")
        ask = f'llm_call("{each} ${{n}}", nil, {{{_MODEL}}}).text'
        return (
            f'let {line} = channel("{line}", 1)\n'
            f"for n in [1, 2, 3] {{ spawn {{ send({line}, {ask}) }} }}\n"
            f'for n in [1, 2, 3] {{ println("{line} ${{receive({line})}}") }}\n'
        )
