"""The kernel for Jupyter: cells of a notebook are inputs of one REPL. Spec: 12 §5.

    kernel -> answers -> cells

`kernel` is the only module that knows ipykernel, the extra `jupyter`. `answers` completes and explains by the
language server's functions, over the cells that ran before; `cells` shows values richly.
"""
