"""A stored configuration decides nothing about memory: what is stored does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from stored_networks import changed_model, make_vit

TESTS = Path(__file__).parents[1]
# Opens models with at most 600 MB more than the libraries need, and says what came of each.
OPEN = """
import sys
from farshore.deployment.model import Model
from farshore.errors import FarshoreError
sys.path.insert(0, sys.argv[1])
from confined import limit_memory

Model.open(sys.argv[2])
limit_memory(600 << 20)
for folder in sys.argv[3:]:
    try:
        Model.open(folder)
        print("opened")
    except FarshoreError as error:
        print(error)
"""
SMALL = {"num_attention_heads": 1, "hidden_size": 8, "intermediate_size": 8}
CONFIGS = {
    "attention over 16,384 tokens": (
        {
            "model_type": "pvt",
            "image_size": 128,
            "num_encoder_blocks": 2,
            "depths": [1, 1],
            "sequence_reduction_ratios": [1, 1],
            "hidden_sizes": [8, 8],
            "patch_sizes": [1, 8],
            "strides": [1, 8],
            "num_attention_heads": [1, 1],
            "mlp_ratios": [1, 1],
        },
        "makes 268,435,456 values of one image",
    ),
    "a table of distances that is not stored": (
        {
            "model_type": "beit",
            **SMALL,
            "num_hidden_layers": 1,
            "image_size": 128,
            "patch_size": 1,
            "use_relative_position_bias": True,
        },
        "values of one image",
    ),
    "a part for texts": (
        {
            "model_type": "clip",
            "vision_config": {**SMALL, "num_hidden_layers": 1, "image_size": 8, "patch_size": 4},
            "text_config": {"vocab_size": 1 << 24, "hidden_size": 1 << 12},
        },
        # The part for images is made; it does not fit the weights of a ViT.
        "the stored weights '",
    ),
    "a wide layer": (
        {"model_type": "vit", **SMALL, "num_hidden_layers": 8, "intermediate_size": 1 << 20},
        "far more than are stored",
    ),
}


@pytest.mark.soak
def test_a_configuration_that_asks_for_memory_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    model = make_vit(tmp_path / "made")

    def asks_for(config: dict) -> Callable[[dict], None]:
        def change(tree: dict) -> None:
            tree["config"]["network_settings"]["config"] = config
            tree["shape"] = [3, 128, 128]
            tree["preprocessing"]["size"] = 128

        return change

    folders = [
        changed_model(model, tmp_path / str(number), asks_for(config))
        for number, (config, _) in enumerate(CONFIGS.values())
    ]
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(TESTS), str(model / "model"), *map(str, folders)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    said = done.stdout.splitlines()
    assert len(said) == len(CONFIGS)
    for line, (what, (_, words)) in zip(said, CONFIGS.items(), strict=True):
        assert words in line, what
