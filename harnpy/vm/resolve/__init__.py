"""Every name bound once, before anything runs. May use `syntax`; knows nothing of how a program is run."""
