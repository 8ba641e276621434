"""The commands, one module each, and the options they share."""
