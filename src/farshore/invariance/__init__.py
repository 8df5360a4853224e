"""Notions of invariance: pure functions of tensors with a leading domain axis."""
