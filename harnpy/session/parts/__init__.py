"""Parts of `Session`, each about one thing that a caller does with it."""
