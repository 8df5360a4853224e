"""The paper as an overlay on a report: its numbers, labels, colours, experiments and methods.

This is the only place that knows them. Only the report's entry points and the command line import
it; everything else receives an `Overlay`.
"""

from .methods import paper_methods
from .overlay import PAPER

__all__ = ["PAPER", "paper_methods"]
