"""Commands with more options than `cli` has room for, one file each, and what they share."""
