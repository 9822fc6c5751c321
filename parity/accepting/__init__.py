"""From what a record shows to the entries of `expect` that say it is known."""
