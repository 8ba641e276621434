"""Rules about how names are used and how control flows."""
