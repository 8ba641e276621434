"""The compiler: resolved trees to Python functions.

Each function of a program becomes one Python function: its inner nodes are fused into it, so that nothing is
dispatched and nothing is called that the program does not call. `nodes` has what each node becomes;
`function` is one function being written, `contexts` what holds for a part of it, `unit` what the functions of
a file share, `program` all lines of a file. `operand` says what a text is, `protocol` which names it may use,
`writer` and `locations` where in the program it is; `listing` shows it to people. May use `syntax`, `resolve`
and `declare`; loaded only when there is something to compile.
"""
