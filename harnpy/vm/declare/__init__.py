"""Declaring builtins: `@builtin` and `@method`, the conversion of arguments, and the table of one Vm."""
