"""What programs keep for their next run."""
