"""The evaluator that defines the language: it walks the tree, one small function a node.

Read it to learn what a construct does. Everything that isn't the tree is shared with the compiler (`emit`):
resolved names, values, operators, calls, tasks, builtins. `tables` says which function evaluates which node;
`activation` is one run of a Harn function, which each of them gets first. May use `syntax`, `resolve`,
`values` and `run`; nothing here is optimised, and nothing should be.
"""
