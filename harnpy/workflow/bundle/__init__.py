"""Session bundles: what a run did, in one document that may leave the machine. Spec: 08 §17, 09 §9.

    export_run(run, mode="sanitized", …) -> bundle      ValueError: unknown mode
    validate_bundle(bundle) -> list of problems         empty when there are none; never raises
    import_bundle(bundle) -> run record                 BundleError: refused, and why
    without_secrets(value) -> value                     what every mode does, for any JSON value

`run` is a run record as `run_record` makes it (08 §8.1); a bundle has the keys of the table in 08 §17.

A bundle holds no more than that table, so the run record that comes out of one has no more either. It
keeps the bundle's identity and its manifest in ``metadata.session_bundle``: exported again, unchanged and
in the same mode, it is that bundle again, byte for byte.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.workflow.bundle.exporting import export_run as export_run
    from harnpy.workflow.bundle.importing import BundleError as BundleError
    from harnpy.workflow.bundle.importing import import_bundle as import_bundle
    from harnpy.workflow.bundle.importing import validate_bundle as validate_bundle
    from harnpy.workflow.bundle.redactor import without_secrets as without_secrets

_MODULES = {
    "export_run": "exporting",
    "import_bundle": "importing",
    "BundleError": "importing",
    "validate_bundle": "importing",
    "without_secrets": "redactor",
}
__all__ = ["BundleError", "export_run", "import_bundle", "validate_bundle", "without_secrets"]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
