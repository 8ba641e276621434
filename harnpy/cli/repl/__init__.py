"""The REPL: its session, its input line, its colours, its views of sessions."""
