"""Reports for people, each one HTML file: on a run, on two runs compared, on an evaluation.

    html_report(run, env) -> text               a run record (08 §8.1)
    cell_of_run(run, env) -> cell               the same in a few lines, for notebooks
    sections_of(run, env) -> list               its sections, for the portal (11 §2)
    html_diff(left, right, diff, env) -> text   two run records and their `run_record_diff` (08 §8.5)
    html_tapes(comparison, env) -> text         two tapes compared (13 §6)
    html_variants(varied, env) -> text          variants of a recorded run (13 §7)
    html_evaluation(report, env) -> text        an evaluation's report (08 §8.3, §8.7)

A file is self-contained: no scripts, no fonts, no network. Secrets are masked before anything is written, as
in a session bundle, also the values of secret variables of ``env``. Output of programs and models is always
escaped.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.workflow.report.diff_report import html_diff as html_diff
    from harnpy.workflow.report.diff_report import html_tapes as html_tapes
    from harnpy.workflow.report.evaluation_report import html_evaluation as html_evaluation
    from harnpy.workflow.report.run_report import cell_of_run as cell_of_run
    from harnpy.workflow.report.run_report import html_report as html_report
    from harnpy.workflow.report.run_report import sections_of as sections_of
    from harnpy.workflow.report.variant_report import html_variants as html_variants

_MODULES = {
    "cell_of_run": "run_report",
    "html_report": "run_report",
    "html_diff": "diff_report",
    "html_evaluation": "evaluation_report",
    "html_tapes": "diff_report",
    "html_variants": "variant_report",
    "sections_of": "run_report",
}
__all__ = [
    "cell_of_run",
    "html_diff",
    "html_evaluation",
    "html_report",
    "html_tapes",
    "html_variants",
    "sections_of",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
