"""The paper as an overlay on a report: its numbers, labels, colours, experiments and methods.

Only the report's entry points and the command line import this package; everything else receives
an `Overlay`.
"""

from .methods import paper_methods
from .overlay import PAPER

__all__ = ["PAPER", "paper_methods"]
