"""Turns the configuration of a large model into that of a tiny one with the same architecture.

Works on the plain dictionary of a transformers configuration, so that it needs no class of any library. One width is
used for every tower, which keeps projections between towers consistent without knowing them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Values = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """What a narrowed model measures; ``hidden`` is ``heads`` times ``head_dim``."""

    layers: int = 2
    hidden: int = 64
    heads: int = 4
    intermediate: int = 128
    experts: int = 4

    @property
    def head_dim(self) -> int:
        """Width of one attention head."""
        return self.hidden // self.heads


LADDER = (Sizes(), Sizes(hidden=128, heads=8, intermediate=256))
"""Tried in this order; an architecture that refuses all of them keeps its widths and loses layers only."""

_LAYERS = """num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers num_decoder_layers
num_encoder_layers depth num_blocks encoder_depth decoder_depth decoder_num_hidden_layers
encoder_num_hidden_layers num_hidden_layers_encoder resampler_depth predictor_num_hidden_layers""".split()
_WIDTHS = """hidden_size d_model n_embd dim embed_dim encoder_hidden_size decoder_hidden_size text_hidden_size
hidden_dim word_embed_proj_dim out_hidden_size output_hidden_size embedding_size embedding_dim emb_dim
pooler_hidden_size pooler_output_size projector_hidden_size vision_output_dim attention_hidden_size lru_width
text_config_hidden_size hidden_dims_text decoder_embed_dim encoder_embed_dim qformer_hidden_size cross_attention_dim
vision_hidden_size audio_hidden_size output_proj_dims""".split()
_HEADS = """num_attention_heads n_head num_heads encoder_attention_heads decoder_attention_heads attention_heads
n_heads decoder_num_attention_heads encoder_num_attention_heads num_attention_heads_encoder num_head
predictor_num_attention_heads""".split()
_KEY_VALUE_HEADS = (
    "num_key_value_heads num_kv_heads n_head_kv kv_n_heads num_global_key_value_heads".split()
)
_HEAD_WIDTHS = """head_dim d_kv dim_head d_head attention_head_dim kv_channels global_head_dim
attention_head_size""".split()
_INTERMEDIATE = """intermediate_size ffn_dim encoder_ffn_dim decoder_ffn_dim d_ff n_inner mlp_dim ffn_hidden_size
dim_feedforward encoder_intermediate_size decoder_intermediate_size decoder_mlp_dim moe_intermediate_size
shared_expert_intermediate_size shared_intermediate_size moe_shared_expert_intermediate_size d_inner dff
expert_ffn_hidden_size intermediate_size_mlp decoder_dim_feedforward encoder_dim_feedforward
block_ff_dim block_ffn_dim""".split()
_EXPERTS = (
    "num_experts num_local_experts n_routed_experts moe_num_experts num_routed_experts".split()
)
_NARROWED = {
    # Low-rank attention of DeepSeek.
    "q_lora_rank": 32,
    "kv_lora_rank": 32,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 16,
    "qk_head_dim": 24,
    "v_head_dim": 16,
    "index_head_dim": 16,
    "index_n_heads": 4,
    # State-space and linear attention.
    "state_size": 8,
    "ssm_state_size": 16,
    "mamba_d_state": 16,
    "mamba_d_head": 16,
    "mamba_headdim": 16,
    "mamba_head_dim": 16,
    "mamba_n_heads": 8,
    "mamba_num_heads": 8,
    "n_mamba_heads": 2,
    "mamba_n_groups": 1,
    "mamba_ngroups": 1,
    "mamba_d_ssm": 128,
    "mamba_dt_rank": 4,
    "time_step_rank": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    # Speech.
    "classifier_proj_size": 32,
    "codevector_dim": 32,
    "proj_codevector_dim": 32,
    "num_codevectors_per_group": 32,
    # Others.
    "projection_dim": 64,
    "rotary_dim": 8,
    "n_rot": 8,
    "laurel_rank": 8,
    "hidden_size_per_layer_input": 16,
    "first_k_dense_replace": 1,
    "max_window_layers": 1,
    "num_experts_per_tok": 2,
    "num_experts_per_token": 2,
    "moe_topk": 2,
    "moe_top_k": 2,
    "moe_k": 2,
    "top_k_experts": 2,
    "decoder_sparse_step": 1,
    "attn_layer_period": 2,
    "attn_layer_offset": 1,
    "expert_layer_period": 2,
    "expert_layer_offset": 1,
    "num_kv_shared_layers": 0,
    "num_nextn_predict_layers": 0,
    "n_group": 1,
    "topk_group": 1,
    "num_groups_of_experts": 1,
}
"""Upper bounds: a value that is already smaller stays."""
_LAYER_INDICES = """global_attn_indexes fullatt_block_indexes cross_attention_layers full_attn_idxs
attn_layer_indices global_attention_blocks""".split()
_STAGE_WIDTHS = """hidden_sizes embed_dims neck_hidden_sizes stage_out_channels stage_in_channels
stage_mid_channels embed_dim_per_stage""".split()
_PER_STAGE_COUNTS = "depths stage_num_blocks blocks_per_stage stage_numb_of_layers layers".split()
_DROPPED = "out_features out_indices stage_names pruned_heads".split()
"""Derived from the number of layers when absent."""
_PER_LAYER = "per_layer_config"
"""Differences of single layers, mostly widths (transformers 5)."""


def narrowed(values: Values, sizes: Sizes) -> Values:
    """A copy of a configuration's dictionary, sub-configurations included, with few layers and narrow widths."""
    result: Values = {}
    for name, value in values.items():
        if name == _PER_LAYER:
            result[name] = {}  # without the key, some architectures make up their usual one
        elif isinstance(value, dict) and _is_configuration(name, value):
            result[name] = narrowed(value, sizes)
        elif name not in _DROPPED:
            result[name] = value
    if "generator_config" in result or "backbone" in result:
        result.pop("use_pretrained_backbone", None)
    _narrow_numbers(result, sizes)
    _narrow_stages(result)
    _narrow_rotary(result, values)
    _narrow_attention_types(result)
    return result


def fewer_layers(values: Values, layers: int = 2) -> Values:
    """A copy with few layers and every width as it was: for architectures that refuse to be narrowed."""
    result = dict(values)
    old = _layers_of(values)
    for name, value in values.items():
        if isinstance(value, dict) and _is_configuration(name, value):
            result[name] = fewer_layers(value, layers)
        elif name in _LAYERS and _is_count(value):
            result[name] = min(value, layers)
        elif isinstance(value, list) and len(value) == old and old > layers:
            result[name] = _first_and_different(value, layers)
    return result


def with_vocabulary(
    values: Values, size: int, special_tokens: dict[str, int], keep_larger: bool = False
) -> Values:
    """A copy whose vocabularies have ``size`` entries and whose token ids (``pad_token_id`` …) lie inside them.

    ``keep_larger``: vocabularies that are larger stay as they are.
    """
    result = dict(values)
    for name, value in values.items():
        if isinstance(value, dict) and _is_configuration(name, value):
            result[name] = with_vocabulary(value, size, special_tokens, keep_larger)
        elif name in special_tokens and value is not None:
            result[name] = special_tokens[name]
        elif "vocab_size" in name and _is_count(value):
            result[name] = max(size, value) if keep_larger else size
        elif name.endswith(("_token_id", "_token_index")) and not _is_inside(value, size):
            result[name] = special_tokens.get(name, size - 1)
    return result


def description(values: Values) -> tuple[int | None, int | None]:
    """Number of layers and width of the main tower, None where it has no such number."""
    for part in (
        values,
        *(v for k, v in values.items() if isinstance(v, dict) and k.startswith("text")),
    ):
        layers = next((part[n] for n in _LAYERS if _is_count(part.get(n))), None)
        hidden = next((part[n] for n in _WIDTHS if _is_count(part.get(n))), None)
        if layers is not None or hidden is not None:
            return layers, hidden
    return None, None


def _is_configuration(name: str, value: Values) -> bool:
    named = name.endswith("_config") or name in (
        "encoder",
        "decoder",
        "generator",
        "question_encoder",
    )
    return "model_type" in value or (
        named and name not in (_PER_LAYER, "quantization_config", "task_specific_config")
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_inside(value: object, size: int) -> bool:
    if isinstance(value, list):
        return all(_is_inside(entry, size) for entry in value)
    return not isinstance(value, int) or value < size


def _layers_of(values: Values) -> int:
    return next((values[name] for name in _LAYERS if _is_count(values.get(name))), 0)


def _heads_of(values: Values) -> int:
    return next((values[name] for name in _HEADS if _is_count(values.get(name))), 0)


def _first_and_different(value: list[Any], count: int) -> list[Any]:
    """The first entries, with a second kind among them where there is one (attention beside recurrence)."""
    first = value[0]
    other = next((entry for entry in value if entry != first), value[min(1, len(value) - 1)])
    return [first, other, *value[2:count]][:count]


def _narrow_numbers(values: Values, sizes: Sizes) -> None:
    heads, layers = _heads_of(values), _layers_of(values)
    rules: list[tuple[list[str], Callable[[int], int]]] = [
        (_LAYERS, lambda old: min(old, sizes.layers)),
        (_WIDTHS, lambda old: sizes.hidden),
        (_KEY_VALUE_HEADS, lambda old: sizes.heads if old >= heads else 1 if old == 1 else 2),
        (_HEADS, lambda old: sizes.heads),
        (_HEAD_WIDTHS, lambda old: _head_width(values, old, sizes)),
        (_INTERMEDIATE, lambda old: min(old, sizes.intermediate)),
        (_EXPERTS, lambda old: min(old, sizes.experts)),
    ]
    changed: Values = {}
    for names, rule in rules:
        for name in names:
            if _is_count(values.get(name)):
                changed[name] = rule(values[name])
    for name, bound in _NARROWED.items():
        if _is_count(values.get(name)):
            changed[name] = min(values[name], bound)
    for name, value in values.items():
        if name in _LAYER_INDICES and isinstance(value, list):
            changed[name] = [1] if value else []
        elif name == "deepstack_visual_indexes" and isinstance(value, list):
            changed[name] = [0] if value else []
        elif name == "conv_dim" and isinstance(value, (list, tuple)):
            changed[name] = [min(entry, 32) for entry in value]
        elif isinstance(value, list) and layers > sizes.layers and len(value) == layers:
            changed[name] = _first_and_different(value, sizes.layers)
    values.update(changed)
    _narrow_state_space(values)


def _head_width(values: Values, old: int, sizes: Sizes) -> int:
    """DeepSeek's configurations give one of two other widths under the same name."""
    if _is_count(values.get("qk_rope_head_dim")):
        return 8 if old == values["qk_rope_head_dim"] else 24
    return sizes.head_dim


def _narrow_state_space(values: Values) -> None:
    """Mamba-2's inner width (``expand`` times the hidden one) is heads times head width."""
    if values.get("model_type") == "mamba2":
        inner = int(values.get("expand", 2) * values["hidden_size"])
        values.update(head_dim=16, num_heads=inner // 16, n_groups=1)
    elif _is_count(values.get("mamba_num_heads")) and "n_groups" in values:
        values["n_groups"] = 1


def _narrow_stages(values: Values) -> None:
    """Hierarchical vision models: one block per stage, widths in their old proportion."""
    for name in _PER_STAGE_COUNTS:
        if isinstance(values.get(name), (list, tuple)) and all(map(_is_count, values[name])):
            values[name] = [1] * len(values[name])
    for name in _STAGE_WIDTHS:
        widths = values.get(name)
        if isinstance(widths, (list, tuple)) and widths and all(map(_is_count, widths)):
            factor = max(1, widths[0] // 8)
            values[name] = [max(8, width // factor // 8 * 8) for width in widths]
    heads = values.get("num_heads")
    if isinstance(heads, (list, tuple)) and heads and _is_count(values.get("embed_dim")):
        values["embed_dim"] = 8 * heads[0]
        if "hidden_size" in values:
            values["hidden_size"] = values["embed_dim"] * 2 ** (len(heads) - 1)


def _narrow_rotary(values: Values, old: Values) -> None:
    """Sections and factors of rotary embeddings have one entry for each pair of a head's rotated dimensions."""
    new_width = next((values[n] for n in _HEAD_WIDTHS if _is_count(values.get(n))), None)
    if new_width is None and _heads_of(values) and _is_count(values.get("hidden_size")):
        new_width = values["hidden_size"] // _heads_of(values)
    for name in ("rope_parameters", "rope_scaling"):
        if isinstance(values.get(name), dict) and new_width:
            values[name] = _narrowed_rope(values[name], old, new_width)


def _narrowed_rope(rope: Values, old: Values, new_width: int) -> Values:
    partial = rope.get("partial_rotary_factor") or old.get("partial_rotary_factor") or 1.0
    pairs = max(1, int(new_width * partial) // 2)
    result = dict(rope)
    for name, value in rope.items():
        if isinstance(value, dict):
            result[name] = _narrowed_rope(value, old, new_width)
        elif name.endswith("section") and isinstance(value, list):
            result[name] = _sections(value, pairs)
        elif name.endswith("_factor") and isinstance(value, list):
            result[name] = value[:pairs]
    return result


def _sections(old: list[int], total: int) -> list[int]:
    """Split ``total`` in the proportion of ``old``, at least 1 each."""
    whole = sum(old) or 1
    parts = [max(1, entry * total // whole) for entry in old]
    parts[-1] += total - sum(parts)
    return parts


def _narrow_attention_types(values: Values) -> None:
    """GPT-Neo repeats a pattern of attention kinds; the pattern's total is the number of layers."""
    if isinstance(values.get("attention_types"), list):
        values["attention_types"] = [[["global", "local"], 1]]
        values["attention_layers"] = ["global", "local"]
