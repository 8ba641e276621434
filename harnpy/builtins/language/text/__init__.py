"""Text: strings, regular expressions, JSON, templates, ids."""
