"""camelyon17: lymph node patches from five hospitals."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from ..data.downloads.prepared import Prepared
from ..data.images.image_folder import read_images
from ..errors import FarshoreError
from .extended import Extended, repeated
from .image import ImageBenchmark

FOLDER = "camelyon17_v1.0"
SIDE = 96
# WILDS uses these hospitals entirely for validation and test. It sets aside a part of the others
# (`split` is 1), which is not used here.
WHOLE = (1, 2)
CENTERS = ("center-0", "center-1", "center-3", "center-4", "center-2")


class Camelyon17(ImageBenchmark):
    """Patches of 96x96 pixels from WILDS: is there tumour in the middle?

    The sources are hospitals 0, 1, 3 and 4; the unseen target is hospital 2. The rows are WILDS'
    training, validation (hospital 1) and test (hospital 2) parts, which gives the paper's
    "approximately 340,000" source and "approximately 85,000" target patches. WILDS'
    in-distribution validation part is not used.
    """

    name = "camelyon17"
    summary = (
        "patches of lymph nodes, tumour or not; four hospitals (about 340,000 patches) -> "
        "a fifth (about 85,000)"
    )
    reference = (
        "Bandi et al., IEEE Trans. Medical Imaging 38(2), 2018; Koh et al., WILDS, ICML 2021"
    )
    licence = "CC0"
    domains: ClassVar[tuple[str, ...]] = CENTERS
    default_target = "center-2"
    classes = ("normal", "tumor")
    steps = 1000
    profile = "large-data-short-training"
    raw = "camelyon17"
    set_name = "camelyon17"
    files = ()
    by_hand = (
        f"{FOLDER} (10.7 GB) is not in {{raw}}: get it with WILDS (https://wilds.stanford.edu, "
        f"dataset camelyon17) so that {{raw}}/{FOLDER}/metadata.csv exists,"
    )

    def has_files(self, raw: Path) -> bool:
        """Whether the unpacked folder of WILDS' archive exists."""
        return (raw / FOLDER / "metadata.csv").is_file() and (raw / FOLDER / "patches").is_dir()

    def build_domains(self, raw: Path, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Read the patches of each hospital in table order."""
        table = read_metadata(raw / FOLDER)
        used = table["center"].isin(WHOLE) | (table["split"] == 0)
        self.about |= {"left_out": int((~used).sum())}
        for name in CENTERS:
            rows = table[used & (table["center"] == int(name.rpartition("-")[2]))]
            if rows.empty:
                raise FarshoreError(
                    f"{raw / FOLDER / 'metadata.csv'} has no patch of {name}: it is not the "
                    "official file"
                )
            files = [str(raw / FOLDER / file) for file in rows["file"]]
            images, _, _ = read_images(files, SIDE, channels=3)
            yield name, images, rows["tumor"].to_numpy(np.uint8)

    def notes(self, prepared: Prepared) -> tuple[str, ...]:
        """Report the patches that are not used."""
        left_out = prepared.about["left_out"]
        where = "inside its training hospitals"
        return (f"{left_out} patches that WILDS sets aside {where} were left out",)


class Camelyon17Extended(Extended, Camelyon17):
    """camelyon17 with fifteen sources, for timing; `center-0-2` is hospital 0 the second time."""

    name = "camelyon17-extended"
    summary = "camelyon17 with 15 source domains by repetition of its four; for timing"
    domains = repeated(CENTERS[:-1], CENTERS[-1])


def read_metadata(folder: Path) -> pd.DataFrame:
    """Read WILDS' table and add the path of each patch as `file`."""
    path = folder / "metadata.csv"
    try:
        columns = ["patient", "node", "x_coord", "y_coord", "tumor", "center", "split"]
        table = pd.read_csv(path, usecols=columns, dtype={"patient": str, "node": str})
    except (OSError, ValueError) as error:
        raise FarshoreError(f"{path} cannot be read as WILDS' table: {error}") from None
    slide = "patient_" + table["patient"] + "_node_" + table["node"]
    position = "_x_" + table["x_coord"].astype(str) + "_y_" + table["y_coord"].astype(str)
    table["file"] = "patches/" + slide + "/patch_" + slide + position + ".png"
    return table
