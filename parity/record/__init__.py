"""A run on disk: one SQLite file, written as results arrive."""
