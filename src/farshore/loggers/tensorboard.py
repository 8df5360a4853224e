"""TensorBoard: one folder of events per run."""

from collections.abc import Mapping

from ..errors import needs
from .logger import Logger


class TensorBoard(Logger):
    """Writes to FOLDER/RUN; `tensorboard --logdir FOLDER` shows all runs in it."""

    name = "tensorboard"

    def open(self) -> None:
        """Open the events."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise needs("tensorboard", "the TensorBoard logger needs tensorboard") from None
        self._writer = SummaryWriter(str(self.folder / self.run))

    def write(self, values: Mapping[str, float]) -> None:
        """Write the numbers as scalars."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, self.count)

    def describe(self, facts: Mapping[str, str]) -> None:
        """Write the facts as a text."""
        self._writer.add_text("run", "\n".join(f"- {key}: {value}" for key, value in facts.items()))

    def close(self) -> None:
        """Flush and close the events."""
        self._writer.close()
