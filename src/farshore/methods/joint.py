"""Joint: plain training on all sources at once, the reference of what replay can reach."""

from .finetune import Finetune


class Joint(Finetune):
    """Train on all sources at once, as if nothing had to be learned in turn.

    Equation: minimise 1/k Σ_e L_ERM(D_e) over the k sources; a step takes `batch_size` rows of each
    source.
    Paper: Vapnik, "An Overview of Statistical Learning Theory", IEEE Transactions on Neural
    Networks 1999, as the baseline ERM of Gulrajani, Lopez-Paz, "In Search of Lost Domain
    Generalization", ICLR 2021.

    Offline: not ranked, because it sees all sources in every step. It does not see target data.
    k sources get k·T steps, as many as a continual method takes.
    """

    name = "joint"
    group = "upper-bound"
    kind = "offline"
    reference = "Gulrajani, Lopez-Paz, ICLR 2021, arXiv:2007.01434"
