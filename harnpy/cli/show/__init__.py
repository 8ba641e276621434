"""Everything shown to people: tables, lines, charts, error texts, live views."""
