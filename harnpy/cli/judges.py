"""The judges of eval packs, as commands have them: their models, and what they have used. Spec: 08 §8.7."""

from __future__ import annotations

import os.path
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harnpy.cli.model_fixtures import load_fixtures
from harnpy.cli.project_setup import require_trust
from harnpy.llm.call import models_alone
from harnpy.workflow.evaluation import is_judged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.formats.dicts import Dict
    from harnpy.llm.call import Models
    from harnpy.workflow.evaluation import EvalPack
    from harnpy.world import World


def has_judges(pack: EvalPack) -> bool:
    """Return whether a rubric of the pack asks a model."""
    return any(map(is_judged, pack["rubrics"]))


@contextmanager
def judging(path: str, pack: EvalPack, world: World, llm_mock: str | None = None) -> Iterator[Models]:
    """The models that judge by the pack in the file ``path``, answered from the file ``llm_mock`` if one is
    named. Raises `FixtureError`, and `ManifestError` where nobody trusts the project, which may say who
    judges."""
    fixtures = None if llm_mock is None else load_fixtures(llm_mock, world.files)
    if has_judges(pack):
        require_trust([path])
    directory = os.path.join(world.files.cwd(), os.path.dirname(path))
    with models_alone(world, lambda: directory) as models:
        if fixtures is not None:
            models.mock.replay(fixtures)
        yield models


def usage_lines(used: Dict) -> Iterator[str]:
    """Return a line on what judges have used, none if they weren't asked."""
    if used["calls"]:
        calls = "1 call" if used["calls"] == 1 else f"{used['calls']} calls"
        tokens = f"{used['input_tokens']} + {used['output_tokens']} tokens"
        unpriced = f", without {used['unpriced']} of unknown price" if used["unpriced"] else ""
        yield f"Judges: {calls}, {tokens}, ${used['cost_usd']:.6f}{unpriced}"
