"""ER: experience replay, the paper's frame without penalty and alignment."""

from .finetune import Finetune
from .method import Replay


class ER(Finetune):
    """Train on the current batch together with one replay batch of each past domain.

    Equation: minimise L_ERM^replay = E_{(x,y) ~ B} CE(h(x), y) with B = B_s ∪ {B_e : e < s} (the
    paper, Eq. 5), pooled over all rows. The memory has one partition per domain, filled at the end
    of the domain by a random draw without replacement. Each row is stored with z, the logits of the
    end-of-domain model in evaluation mode.
    Paper: Chaudhry et al., "On Tiny Episodic Memories in Continual Learning", 2019; here with
    partitions by domain.
    """

    name = "er"
    group = "replay"
    reference = "Chaudhry et al. 2019, arXiv:1902.10486"
    replay = Replay(memory="partitions", stores=("logits",))
