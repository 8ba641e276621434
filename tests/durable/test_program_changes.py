"""A changed program is tried on the records before it takes the place of a run's: nothing is done or stored.

Spec: 10 §C19.1 "Program runs".
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from harnpy.durable import bodies
from harnpy.durable.programs import check
from harnpy.syntax.diagnostic import SourceFault
from harnpy.workflow.engines.errors import ReplayDiverged, RunFailed
from harnpy.workflow.engines.local import LocalEngine
from tests.durable.runs import MemoryRun, Outside, done, job_of

SOURCE = """
println("a")
exec("tool", "x")
write_file("f", "1")
let both = parallel each [1, 2] { n -> exec("tool", "y${n}").stdout }
sleep(60ms)
println("b")
"""


@pytest.mark.parametrize(
    "more",
    [
        "",
        'exec("tool", "z")',
        'println("c")\nwrite_file("g", "2")',
        "sleep(1h)",
        "var n = 0\nwhile true { n = n + 1 }",
        'llm_call("x", nil, {provider: "p", model: "m"})',
        'throw "x"',
    ],
)
def test_a_trial_goes_as_far_as_the_records_and_does_nothing(more: str, tmp_path: Path) -> None:
    outside, context = Outside(), MemoryRun()
    done(job_of(SOURCE, tmp_path), context, outside)
    ran, steps = Counter(outside.ran), list(context.steps)
    outside.output()
    (tmp_path / "f").unlink()
    for count in range(len(steps) + 1):
        check(job_of(SOURCE + more, tmp_path), "r1", steps[:count], world=outside, prepare=outside.prepare)
    assert outside.ran == ran
    assert not outside.asked
    assert outside.output() == ""
    assert [*tmp_path.iterdir()] == []


def test_a_text_that_can_t_go_on_changes_nothing(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/store.db"
    engine = LocalEngine(url, bodies(url))
    try:
        source = 'write_file("begun", "")\nif !file_exists("go") { throw "no" }\nreturn 7'
        with pytest.raises(RunFailed):
            engine.start(job_of(source, tmp_path), id="one").result(20)
        (tmp_path / "begun").unlink()
        with pytest.raises(SourceFault):
            engine.resume("one", job=job_of("let let", tmp_path))
        with pytest.raises(ReplayDiverged, match="its record has task_root/1:write"):
            engine.resume("one", job=job_of('println("${read_file("other")}")', tmp_path))
        assert engine.job("one").body == job_of(source, tmp_path).body
        assert not (tmp_path / "begun").exists()
        mended = source.replace("throw", "let x =")
        assert engine.resume("one", job=job_of(mended, tmp_path)).result(20) == 7
    finally:
        engine.close()
