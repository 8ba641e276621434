"""The language's own builtins: text, data, streams, tasks, and the machine that a program runs on."""
