"""The side that runs inside the environment under test: protocol, server, evidence."""
