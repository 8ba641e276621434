"""What programs keep in files for their next run: values, texts, facts about directories, memories."""
