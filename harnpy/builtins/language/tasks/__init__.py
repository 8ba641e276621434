"""Tasks, channels and streams: what runs at the same time, and what it shares."""
