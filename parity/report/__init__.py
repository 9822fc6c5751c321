"""Runs for people and programs: tables, JSON, CSV, Markdown, and progress on stderr."""
