"""Special tokens, post-processing and chat templates of the well-known kinds of tokenizers.

The strings are those of the published tokenizers, because scripts and libraries look them up by name; ``None`` means
that the published tokenizer has no such token, which is itself a pitfall (no pad token) that a rehearsal must keep.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """How one kind of tokenizer splits text and marks it."""

    algorithm: str = "bytes"
    """``bytes``: byte-level pairs; ``pieces``: WordPiece; ``characters``: for CTC."""
    class_name: str = "PreTrainedTokenizerFast"
    bos: str | None = None
    eos: str | None = None
    pad: str | None = None
    unk: str | None = None
    cls: str | None = None
    sep: str | None = None
    mask: str | None = None
    single: str | None = None
    """Template around one sequence, in the notation of tokenizers' TemplateProcessing; None: nothing is added."""
    pair: str | None = None
    extra: tuple[str, ...] = ()
    token_type_ids: bool = False
    padding_side: str = "right"
    chat: str = "chatml"


_BERT_PAIR = "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1"

KINDS: dict[str, Kind] = {
    "bert": Kind(
        "pieces",
        "BertTokenizerFast",
        pad="[PAD]",
        unk="[UNK]",
        cls="[CLS]",
        sep="[SEP]",
        mask="[MASK]",
        single="[CLS]:0 $A:0 [SEP]:0",
        pair=_BERT_PAIR,
        token_type_ids=True,
    ),
    "albert": Kind(
        bos="[CLS]",
        eos="[SEP]",
        pad="<pad>",
        unk="<unk>",
        cls="[CLS]",
        sep="[SEP]",
        mask="[MASK]",
        single="[CLS]:0 $A:0 [SEP]:0",
        pair=_BERT_PAIR,
        token_type_ids=True,
    ),
    "deberta": Kind(
        bos="[CLS]",
        eos="[SEP]",
        pad="[PAD]",
        unk="[UNK]",
        cls="[CLS]",
        sep="[SEP]",
        mask="[MASK]",
        single="[CLS]:0 $A:0 [SEP]:0",
        pair=_BERT_PAIR,
        token_type_ids=True,
    ),
    "modernbert": Kind(
        pad="[PAD]",
        unk="[UNK]",
        cls="[CLS]",
        sep="[SEP]",
        mask="[MASK]",
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:0 [SEP]:0",
    ),
    "roberta": Kind(
        bos="<s>",
        eos="</s>",
        pad="<pad>",
        unk="<unk>",
        cls="<s>",
        sep="</s>",
        mask="<mask>",
        single="<s>:0 $A:0 </s>:0",
        pair="<s>:0 $A:0 </s>:0 </s>:0 $B:0 </s>:0",
    ),
    "xlm": Kind(
        bos="<s>",
        eos="</s>",
        pad="<pad>",
        unk="<unk>",
        cls="<s>",
        sep="</s>",
        mask="<mask>",
        single="<s>:0 $A:0 </s>:0",
        pair="<s>:0 $A:0 </s>:0 </s>:0 $B:0 </s>:0",
    ),
    "mpnet": Kind(
        "pieces",
        bos="<s>",
        eos="</s>",
        pad="<pad>",
        unk="[UNK]",
        cls="<s>",
        sep="</s>",
        mask="<mask>",
        single="<s>:0 $A:0 </s>:0",
        pair="<s>:0 $A:0 </s>:0 </s>:0 $B:0 </s>:0",
    ),
    "gpt2": Kind(
        class_name="GPT2TokenizerFast",
        bos="<|endoftext|>",
        eos="<|endoftext|>",
        unk="<|endoftext|>",
    ),
    "neox": Kind(
        bos="<|endoftext|>", eos="<|endoftext|>", unk="<|endoftext|>", extra=("<|padding|>",)
    ),
    "opt": Kind(
        bos="</s>",
        eos="</s>",
        pad="<pad>",
        unk="</s>",
        single="</s>:0 $A:0",
        pair="</s>:0 $A:0 </s>:0 $B:0",
    ),
    "bloom": Kind(bos="<s>", eos="</s>", pad="<pad>", unk="<unk>", padding_side="left"),
    "llama2": Kind(
        bos="<s>",
        eos="</s>",
        unk="<unk>",
        single="<s>:0 $A:0",
        pair="<s>:0 $A:0 <s>:1 $B:1",
        padding_side="left",
        chat="instruct",
    ),
    "mistral": Kind(
        bos="<s>",
        eos="</s>",
        unk="<unk>",
        single="<s>:0 $A:0",
        pair="<s>:0 $A:0 <s>:1 $B:1",
        padding_side="left",
        extra=("[INST]", "[/INST]"),
        chat="instruct",
    ),
    "llama3": Kind(
        bos="<|begin_of_text|>",
        eos="<|end_of_text|>",
        single="<|begin_of_text|>:0 $A:0",
        pair="<|begin_of_text|>:0 $A:0 <|begin_of_text|>:1 $B:1",
        padding_side="left",
        extra=(
            "<|eot_id|>",
            "<|start_header_id|>",
            "<|end_header_id|>",
            "<|finetune_right_pad_id|>",
        ),
        chat="llama3",
    ),
    "qwen": Kind(
        eos="<|im_end|>",
        pad="<|endoftext|>",
        extra=(
            "<|im_start|>",
            "<|vision_start|>",
            "<|vision_end|>",
            "<|image_pad|>",
            "<|video_pad|>",
            "<think>",
            "</think>",
            "<tool_call>",
            "</tool_call>",
        ),
        padding_side="left",
    ),
    "smollm": Kind(
        bos="<|im_start|>",
        eos="<|im_end|>",
        pad="<|im_end|>",
        unk="<|endoftext|>",
        padding_side="left",
    ),
    "deepseek": Kind(
        bos="<｜begin▁of▁sentence｜>",
        eos="<｜end▁of▁sentence｜>",
        pad="<｜end▁of▁sentence｜>",
        padding_side="left",
        single="<｜begin▁of▁sentence｜>:0 $A:0",
        extra=("<｜User｜>", "<｜Assistant｜>", "<think>", "</think>"),
    ),
    "gemma": Kind(
        bos="<bos>",
        eos="<eos>",
        pad="<pad>",
        unk="<unk>",
        single="<bos>:0 $A:0",
        pair="<bos>:0 $A:0 <bos>:1 $B:1",
        padding_side="left",
        extra=(
            "<start_of_turn>",
            "<end_of_turn>",
            "<start_of_image>",
            "<end_of_image>",
            "<image_soft_token>",
        ),
        chat="gemma",
    ),
    "phi3": Kind(
        bos="<s>",
        eos="<|endoftext|>",
        pad="<|endoftext|>",
        unk="<unk>",
        padding_side="left",
        extra=("<|assistant|>", "<|user|>", "<|system|>", "<|end|>"),
    ),
    "t5": Kind(
        eos="</s>",
        pad="<pad>",
        unk="<unk>",
        single="$A:0 </s>:0",
        pair="$A:0 </s>:0 $B:0 </s>:0",
        extra=tuple(f"<extra_id_{index}>" for index in range(100)),
    ),
    "mbart": Kind(
        bos="<s>",
        eos="</s>",
        pad="<pad>",
        unk="<unk>",
        cls="<s>",
        sep="</s>",
        mask="<mask>",
        single="$A:0 </s>:0",
        pair="$A:0 $B:0 </s>:0",
        extra=("en_XX", "ro_RO", "de_DE", "fr_XX", "zh_CN"),
    ),
    "marian": Kind(
        eos="</s>", pad="<pad>", unk="<unk>", single="$A:0 </s>:0", pair="$A:0 $B:0 </s>:0"
    ),
    "whisper": Kind(
        class_name="WhisperTokenizerFast",
        bos="<|endoftext|>",
        eos="<|endoftext|>",
        pad="<|endoftext|>",
        unk="<|endoftext|>",
        extra=(
            "<|startoftranscript|>",
            "<|en|>",
            "<|zh|>",
            "<|de|>",
            "<|fr|>",
            "<|hi|>",
            "<|es|>",
            "<|translate|>",
            "<|transcribe|>",
            "<|startoflm|>",
            "<|startofprev|>",
            "<|nospeech|>",
            "<|notimestamps|>",
        ),
    ),
    "clip": Kind(
        bos="<|startoftext|>",
        eos="<|endoftext|>",
        pad="<|endoftext|>",
        unk="<|endoftext|>",
        single="<|startoftext|>:0 $A:0 <|endoftext|>:0",
    ),
    "wav2vec2": Kind(
        "characters",
        "Wav2Vec2CTCTokenizer",
        bos="<s>",
        eos="</s>",
        pad="<pad>",
        unk="<unk>",
        extra=("|",),
    ),
}

_TURN = (
    "{%- if message['role'] == 'assistant' %}"
    "{% generation %}{{ message['content'] }}END{% endgeneration %}"
    "{%- else %}{{ message['content'] }}END{%- endif %}"
)


def chat_template(kind: Kind) -> str:
    """A template in the manner of the kind's published ones, with the marks for assistant-only losses."""
    start, end, system = _MARKS[kind.chat]
    body = _TURN.replace("END", end)
    return (
        "{%- for message in messages %}"
        + "{{- '"
        + start
        + "' }}"
        + body
        + "{%- endfor %}{%- if add_generation_prompt %}{{- '"
        + start.replace("' ~ message['role'] ~ '", system)
        + "' }}{%- endif %}"
    )


_ROLE = "' ~ message['role'] ~ '"
_MARKS = {
    "chatml": ("<|im_start|>" + _ROLE + "\\n", "{{ '<|im_end|>\\n' }}", "assistant"),
    "llama3": (
        "<|start_header_id|>" + _ROLE + "<|end_header_id|>\\n\\n",
        "{{ '<|eot_id|>' }}",
        "assistant",
    ),
    "gemma": ("<start_of_turn>" + _ROLE + "\\n", "{{ '<end_of_turn>\\n' }}", "model"),
    "instruct": ("[" + _ROLE + "] ", "{{ eos_token }}", "assistant"),
}
