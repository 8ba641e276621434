"""Secrets that leaked from sanitized bundles: none is left, wherever in a run it was said. Issue 30."""

from __future__ import annotations

from random import Random

from harnpy.workflow.bundle import export_run, validate_bundle
from tests.formats.secrets.corpus import CONTEXTS, leaks, named_like_secrets, of_standards


def test_secrets_leave_no_sanitized_bundle() -> None:
    random = Random(30)
    samples = [*named_like_secrets(random), *of_standards(random)]
    texts = [write(sample.name, sample.text) for write in CONTEXTS.values() for sample in samples]
    events = [{"kind": "message", "role": "user", "text": text} for text in texts]
    events += [
        {"kind": "tool_call", "metadata": {"arguments": {sample.name: sample.text}}} for sample in samples
    ]
    run = {"id": "run_1", "status": "completed", "task": "\n".join(texts[: len(samples)])}
    bundle = export_run({**run, "transcript": {"_type": "transcript", "events": events}}, "sanitized")
    assert len(leaks([sample.secret for sample in samples], str(events))) == len(samples)
    assert leaks([sample.secret for sample in samples], str(bundle)) == []
    assert validate_bundle(bundle) == []
