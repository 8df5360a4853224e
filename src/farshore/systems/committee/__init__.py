"""Committees: several systems that learn the same domains and predict together."""
