"""Files and paths: reading, writing, looking around; paths as text."""
