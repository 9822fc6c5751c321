"""Why a path differs: what it computes instead, which switch restores it, which line to change."""
