"""Explanations as people read them."""
