"""How far outputs are apart and what that amounts to: NumPy and ml_dtypes only, never XLA."""
