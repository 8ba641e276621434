"""The machine that a program runs on: processes, shells, paths, and what the embedder offers."""
