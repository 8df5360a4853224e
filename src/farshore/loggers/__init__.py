"""Loggers: observers that write losses and scores to a CSV file, TensorBoard, W&B or MLflow.

In Python: `from farshore.loggers import TensorBoard`, then `Learner(observer=TensorBoard("logs"))`.
On the command line: `--log tensorboard`. Each of them but CSV needs a package, which is an extra.
"""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.lazy import lazy_exports
from ..errors import needs, unknown

if TYPE_CHECKING:
    from .csv_file import CSV as CSV
    from .logger import Logger as Logger
    from .services import MLflow as MLflow
    from .services import TensorBoard as TensorBoard
    from .services import Wandb as Wandb

# What `--log` calls them, and the package that each needs.
CLASSES = {"csv": "CSV", "tensorboard": "TensorBoard", "wandb": "Wandb", "mlflow": "MLflow"}
PACKAGES = {"csv": "", "tensorboard": "tensorboard", "wandb": "wandb", "mlflow": "mlflow"}

if not TYPE_CHECKING:  # type checkers use the imports above and reject any other name
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__, "PACKAGES", "check_logger", "make_logger"
    )


def check_logger(name: str) -> None:
    """Refuse an unknown logger, and one whose package is not installed."""
    if name not in PACKAGES:
        raise unknown("logger", name, PACKAGES)
    package = PACKAGES[name]
    if package and find_spec(package) is None:
        raise needs(name, f"--log {name} needs {package}", otherwise="use --log csv")


def logger_class(name: str) -> "type[Logger]":
    """The logger of this name."""
    check_logger(name)
    return getattr(sys.modules[__name__], CLASSES[name])


def make_logger(name: str, folder: str | Path, run: str) -> "Logger":
    """The logger called `name`, which writes the run called `run` into `folder`."""
    return logger_class(name)(folder, run)
