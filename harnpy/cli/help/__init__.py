"""Help on builtins, from the builtin table and the specification. Runs no program."""
