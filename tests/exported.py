"""What a program hands to an exported table model: the inputs as its metadata describe them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from farshore.data.tables.dates import expand
from farshore.data.tables.table import TablePreprocessing
from farshore.deployment.export import MISSING


def encode(preprocessing: TablePreprocessing, frame: pd.DataFrame) -> dict[str, Tensor]:
    """Convert a data frame to the inputs of the exported model: numbers and category codes."""
    for column, form in preprocessing.dates.items():
        frame = frame.assign(**expand(frame[column], form))
    numbers = [
        pd.to_numeric(frame[column]).to_numpy(dtype=float) for column in preprocessing.numbers
    ]
    codes = []
    for column, values in preprocessing.categories.items():
        code_of = {value: code for code, value in enumerate(values or [])}
        texts, missing = frame[column].astype(str), frame[column].isna()
        codes.append(
            [
                MISSING if is_missing else code_of.get(text, len(code_of))
                for text, is_missing in zip(texts, missing, strict=True)
            ]
        )
    inputs = {}
    if numbers:
        inputs["numbers"] = torch.from_numpy(np.stack(numbers, axis=1))
    if codes:
        inputs["categories"] = torch.tensor(codes, dtype=torch.long).T.contiguous()
    return inputs
