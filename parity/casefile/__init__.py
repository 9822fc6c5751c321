"""Case files: YAML in, cases out (`parity.casefile.load`), without JAX or TensorFlow."""
