"""No module imports another that imports it, directly or through others, lazy imports included.

The contract of import-linter that forbids circles is about parts of a package side by side, annotations
included; this is about every module, so about a package and what is inside it, too.
"""

from __future__ import annotations

from graphlib import TopologicalSorter

import grimp


def test_no_module_imports_itself_through_others() -> None:
    graph = grimp.build_graph("harnpy", exclude_type_checking_imports=True, cache_dir=None)
    TopologicalSorter({m: graph.find_modules_directly_imported_by(m) for m in graph.modules}).prepare()
