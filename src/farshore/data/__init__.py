"""Domains, scenarios, the sealed target, and reading raw files into them."""
