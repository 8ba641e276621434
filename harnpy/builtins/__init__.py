"""The builtin functions: one family of `builtins.tsv` or one idea a module, all thin.

A module declares with `@builtin` (`harnpy.vm.declare.builtin`) and changes nothing when imported;
`harnpy.builtins.catalog` finds the declarations. Everything below this package may be imported here; Harn
values meet the domain packages nowhere else.
"""
