"""Finetune: sequential fine-tuning, the baseline of every comparison."""

from ..data.batch import Batch
from .method import Method, Terms


class Finetune(Method):
    """Train on each domain in turn, without using past domains.

    Equation: minimise L_ERM(D_s) = 1/n_s Σ_i CE(h(x_i), y_i) at each domain s.
    Paper: Janetzky, Schlagenhauf, Feuerriegel, "Continual Learning of Domain-Invariant
    Representations", Eq. 1 (Finetune).
    """

    name = "finetune"
    needs_classes = False
    group = "finetune"
    reference = "the paper, Eq. 1"
    weighs_rows = True
    grows = True

    def terms(self, batch: Batch) -> Terms:
        """L_ERM on the current rows."""
        _, logits = self.forward(batch)
        return {"erm": self.risk(logits, batch.labels, batch.weights)}
