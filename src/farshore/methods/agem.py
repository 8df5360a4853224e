"""A-GEM: steps that, to first order, do not increase the mean loss on the memory."""

from ..data.batch import Batch
from ..invariance.sign_agreement import remove_conflict
from .finetune import Finetune
from .gradient import flat, gradients_of, trainable, write_gradients
from .method import Replay, Terms


class AGEM(Finetune):
    """Project the current gradient if it conflicts with the gradient of the memory.

    Equation: g = ∇L_ERM(B_s), g_ref = ∇L_ERM(B_mem), both at the same weights; if <g, g_ref> < 0
    over all parameters, step along g - <g, g_ref> / <g_ref, g_ref> · g_ref, otherwise along g. The
    memory's loss itself is never minimised.
    Paper: Chaudhry, Ranzato, Rohrbach, Elhoseiny, "Efficient Lifelong Learning with A-GEM", ICLR
    2019.

    It has no settings of its own, in the paper's table or elsewhere. B_mem are the replayed rows of
    all past domains, as many as every replay method gets (the official code draws 256 for any batch
    size). Readings: the memory is filled when a domain ends and never contains the current one, as
    in the official code, not by a reservoir (Mammoth's `agem_r`); the two gradients come from two
    passes, so BatchNorm sees the current and the replayed rows separately. <g, g_ref> = 0 leaves g
    unchanged. The guarantee is for the gradient passed to the optimiser: Adam's moments and weight
    decay may still turn the step against g_ref (`optimizer=sgd` is the original). Domains that
    share their labels rarely conflict, so A-GEM then stays close to fine-tuning; the logged
    `conflict` is 1 in steps that were projected.
    """

    name = "agem"
    group = "optimization"
    reference = "Chaudhry et al., ICLR 2019, arXiv:1812.00420"
    weighs_rows = False
    grows = False
    replay = Replay(memory="partitions")

    def gradients(self, batch: Batch) -> Terms:
        """g without the part that conflicts with g_ref; plain g while the memory is empty."""
        if not batch.replayed:
            return super().gradients(batch)
        parameters = trainable(self.network)
        rows = batch.rows
        erm = self.risk(self.network(batch.inputs[:rows]), batch.labels[:rows])
        current = flat(gradients_of(erm, parameters))
        replay = self.risk(self.network(batch.inputs[rows:]), batch.labels[rows:])
        reference = flat(gradients_of(replay, parameters))
        write_gradients(parameters, remove_conflict(current, reference, "global", [len(current)]))
        conflict = (current.dot(reference) < 0).to(erm.dtype)
        return {"erm": erm.detach(), "replay": replay.detach(), "conflict": conflict}
