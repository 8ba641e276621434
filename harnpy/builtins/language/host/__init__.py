"""The machine that a program runs on: processes, shells, paths, and the embedder's own operations."""
