"""What can be known of a program before it runs: names, types, options, style. Knows the tree, runs nothing.

`Knowledge` says what the builtins are, `Imported` what the imports bring; both are handed in from above, so
that a check needs no file, no Vm and no builtin's module. A type is a type node of the syntax: what is
inferred and what is written are the same thing, and both print alike. Spec: 03.
"""
