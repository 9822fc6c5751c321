"""What changed between two runs, or two environments of one: how, why, and whether it is worse."""
