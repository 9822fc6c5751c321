"""From a `ProgramSpec` to a JAX callable."""
