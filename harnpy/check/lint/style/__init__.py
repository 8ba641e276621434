"""Rules about layout, style and idiom."""
