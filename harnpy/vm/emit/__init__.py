"""The compiler: resolved trees to Python functions.

Each function of a program becomes one Python function: its inner nodes are fused into it, so that nothing is
dispatched and nothing is called that the program does not call. `writer` keeps the text and what each line
stands for; `function` is one function being written, `unit` what the functions of a file share, `program`
the whole text; `protocol` lists the names that the text may use. Each other module writes one family of
nodes. May use `syntax`, `resolve` and `declare`; loaded only when there is something to compile.
"""
