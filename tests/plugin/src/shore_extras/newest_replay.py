"""newest-replay: plain replay of the newest rows, from the memory of this package."""

from farshore.methods import Batch, Method, Replay, Terms


class NewestReplay(Method):
    """Trains on the current rows and on rows of the recent past.

    Equation: L = CE(current rows) + CE(rows of the memory).
    Paper: Chaudhry et al., "On Tiny Episodic Memories in Continual Learning", 2019, which compares
    this ring buffer with a reservoir.
    """

    name = "newest-replay"
    group = "replay"
    reference = "Chaudhry et al., 2019, arXiv:1902.10486"
    replay = Replay(memory="newest", joined=False, draws=("past",))

    def terms(self, batch: Batch) -> Terms:
        """The risk of the current rows and, from the second domain on, of rows of the past."""
        _, logits = self.forward(batch)
        terms = {"erm": self.risk(logits, batch.labels)}
        if "past" in batch.draws:
            past = batch.draws["past"]
            terms["replay"] = self.risk(self.network(past.inputs), past.labels)
        return terms
