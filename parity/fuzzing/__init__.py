"""Random cases of an op, on which paths disagree: found, grouped and reduced."""
