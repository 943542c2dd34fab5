"""The memory estimate counts the same parameters as the real architectures do."""

from pathlib import Path

import pytest

from pamer_lab.models import embedded
from pamer_lab.models.devices import QWEN35_9B, Geometry, estimate, fitting_cards, geometry_of


def test_the_default_qwen35_geometry_has_32_blocks_of_4096_and_our_parameter_count() -> None:
    import torch
    from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

    with torch.device("meta"):
        model = Qwen3_5ForCausalLM(Qwen3_5TextConfig())
    assert len(model.model.layers) == 32
    assert model.config.hidden_size == 4_096
    assert model.config.layer_types.count("linear_attention") == QWEN35_9B.linear_blocks == 24
    assert sum(parameter.numel() for parameter in model.parameters()) == QWEN35_9B.parameters


@pytest.mark.weights
def test_the_embedded_models_geometry_is_read_from_its_folder() -> None:
    shape = geometry_of(embedded.prepared_folder())
    assert (shape.blocks, shape.width, shape.tied) == (30, 576, True)
    assert shape.parameters == 134_515_008


def test_longer_inputs_need_more_and_small_cards_do_not_fit() -> None:
    short, long = estimate(QWEN35_9B, 1_000, 4096), estimate(QWEN35_9B, 35_000, 4096)
    assert long.weights == short.weights
    assert long.cache > 10 * short.cache - short.weights
    assert not any("16 GB" in card for card in fitting_cards(long.total))
    assert any("80 GB" in card for card in fitting_cards(long.total))


def test_a_text_config_inside_a_larger_config_is_used(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        '{"text_config": {"num_hidden_layers": 2, "hidden_size": 8, "intermediate_size": 16, "vocab_size": 10, "num_attention_heads": 2}}'
    )
    assert geometry_of(tmp_path) == Geometry(2, 8, 16, 10, 2, 2, 4)
