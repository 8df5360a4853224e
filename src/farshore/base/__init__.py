"""The base that everything stands on: files, locks, states, registries, randomness, names."""
