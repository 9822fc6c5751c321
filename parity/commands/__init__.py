"""The larger commands, one file each, and what they share; `cli` adds the small ones."""
