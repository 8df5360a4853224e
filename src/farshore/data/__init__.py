"""Domains, scenarios, the seal on the target, and how raw files become them."""
