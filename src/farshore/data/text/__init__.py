"""Columns of text: frozen features, computed without the rows of any later site."""
