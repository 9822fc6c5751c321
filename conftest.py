"""Makes `pytest cases/` work in a checkout, installed or not."""

pytest_plugins = ["parity.pytest_plugin"]
