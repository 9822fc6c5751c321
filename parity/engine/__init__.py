"""Runs cases in isolated workers."""
