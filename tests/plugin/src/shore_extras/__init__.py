"""A plugin for Farshore: each of its modules adds one thing, named in pyproject.toml."""
