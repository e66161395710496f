"""What is known of public model repositories by their name, where nothing of them is on disk.

Only what a rehearsal can notice is kept: the architecture, whether heads are grouped and embeddings tied, the kind of
tokenizer and the precision of the published weights. Sizes are not: the models are shrunk anyway. The names are those
of the Hugging Face Hub as of 2026; both the short historical and the full names are matched.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Family:
    """One kind of repository. ``model_type`` is transformers' name of the architecture."""

    model_type: str
    tokenizer: str | None
    """A kind of `special_tokens.KINDS`; None: the model reads no text."""
    architecture: str | None = None
    """The class whose weights the repository holds; None: what transformers pretrains for the model type."""
    precision: str = "float32"
    """Of the published weights, which ``dtype="auto"`` takes over."""
    chat: bool = False
    """Whether the tokenizer has a chat template."""
    values: dict[str, Any] = field(default_factory=dict)
    """Differences from the configuration class's defaults."""
    sentence_embeddings: bool = False
    """Whether the repository is one of sentence-transformers', with pooling."""


_HALF = "bfloat16"
_TIED: dict[str, Any] = {"tie_word_embeddings": True}
_GROUPED: dict[str, Any] = {"num_attention_heads": 32, "num_key_value_heads": 8}


def _decoder(model_type: str, tokenizer: str, chat: bool = True, **values: Any) -> Family:
    return Family(model_type, tokenizer, precision=_HALF, chat=chat, values=values)


def _classifier(model_type: str, architecture: str) -> Family:
    return Family(model_type, None, architecture)


_BY_NAME: list[tuple[str, Family]] = [
    # Test repositories of the libraries: tiny-Qwen2ForCausalLM-2.5 and so on.
    ("*tiny*llama*", _decoder("llama", "llama2")),
    ("*tiny*qwen3moe*", _decoder("qwen3_moe", "qwen")),
    ("*tiny*qwen3*", _decoder("qwen3", "qwen", **_TIED)),
    (
        "*tiny*qwen2*sequenceclass*",
        Family("qwen2", "qwen", "Qwen2ForSequenceClassification", _HALF, True),
    ),
    ("*tiny*qwen2*", _decoder("qwen2", "qwen", **_TIED)),
    ("*tiny*mistral*", _decoder("mistral", "mistral")),
    ("*tiny*gemma*", _decoder("gemma2", "gemma", **_TIED)),
    ("*tiny*t5*", Family("t5", "t5")),
    ("*tiny*bert*", Family("bert", "bert")),
    ("*tiny*gpt2*", Family("gpt2", "gpt2")),
    ("*tiny*vit*", _classifier("vit", "ViTForImageClassification")),
    # Decoders.
    ("*llama-4*", _decoder("llama4_text", "llama3")),
    ("*llama-3.2-1b*", _decoder("llama", "llama3", **_GROUPED, **_TIED)),
    ("*llama-3.2-3b*", _decoder("llama", "llama3", **_GROUPED, **_TIED)),
    ("*llama-3*", _decoder("llama", "llama3", **_GROUPED)),
    ("*meta-llama-3*", _decoder("llama", "llama3", **_GROUPED)),
    ("*llama-2-70b*", _decoder("llama", "llama2", **_GROUPED)),
    ("*tinyllama*", _decoder("llama", "llama2", **_GROUPED)),
    ("*llama-2*", _decoder("llama", "llama2")),
    ("*vicuna*", _decoder("llama", "llama2")),
    ("*llama*", _decoder("llama", "llama2")),
    ("deepseek-ai/deepseek-r1-distill-llama*", _decoder("llama", "deepseek", **_GROUPED)),
    ("deepseek-ai/deepseek-r1-distill-qwen*", _decoder("qwen2", "deepseek")),
    ("deepseek-ai/deepseek-v2*", _decoder("deepseek_v2", "deepseek", num_experts_per_tok=6)),
    ("deepseek-ai/deepseek*", _decoder("deepseek_v3", "deepseek")),
    ("*qwen2.5-vl*", Family("qwen2_5_vl", "qwen", precision=_HALF, chat=True)),
    ("*qwen2-vl*", Family("qwen2_vl", "qwen", precision=_HALF, chat=True)),
    ("*qwen3-*-a*b*", _decoder("qwen3_moe", "qwen")),
    ("*qwen3-reranker*", _decoder("qwen3", "qwen", **_TIED)),
    ("*qwen3*", _decoder("qwen3", "qwen", **_TIED)),
    ("*qwen1.5-moe*", _decoder("qwen2_moe", "qwen")),
    ("*qwen*", _decoder("qwen2", "qwen", **_TIED)),
    ("*mixtral*", _decoder("mixtral", "mistral")),
    ("*mistral*", _decoder("mistral", "mistral")),
    ("*ministral*", _decoder("mistral", "mistral")),
    ("*zephyr*", _decoder("mistral", "mistral")),
    ("google/gemma-3-270m*", _decoder("gemma3_text", "gemma", **_TIED)),
    ("google/gemma-3-1b*", _decoder("gemma3_text", "gemma", **_TIED)),
    ("google/gemma-3*", Family("gemma3", "gemma", precision=_HALF, chat=True)),
    ("*gemma-2*", _decoder("gemma2", "gemma", **_TIED)),
    ("*gemma*", _decoder("gemma", "gemma", **_TIED)),
    ("microsoft/phi-1*", _decoder("phi", "gpt2", chat=False)),
    ("microsoft/phi-2*", _decoder("phi", "gpt2", chat=False)),
    ("microsoft/phi-*moe*", _decoder("phimoe", "phi3")),
    ("microsoft/phi*", _decoder("phi3", "phi3")),
    ("*smollm3*", _decoder("smollm3", "smollm")),
    ("*smollm*", _decoder("llama", "smollm", **_TIED)),
    ("openai/gpt-oss*", _decoder("gpt_oss", "qwen")),
    ("*olmo-2*", _decoder("olmo2", "neox")),
    ("*olmoe*", _decoder("olmoe", "neox")),
    ("*olmo*", _decoder("olmo", "neox")),
    ("*granite*", _decoder("granite", "gpt2")),
    ("*stablelm*", _decoder("stablelm", "neox")),
    ("tiiuae/falcon-*", _decoder("falcon", "neox", multi_query=True)),
    ("bigcode/starcoder2*", _decoder("starcoder2", "gpt2", chat=False)),
    ("bigcode/*", _decoder("gpt_bigcode", "gpt2", chat=False)),
    ("*codegen*", Family("codegen", "gpt2")),
    ("bigscience/bloom*", Family("bloom", "bloom", precision="float16")),
    ("bigscience/mt0*", Family("mt5", "t5")),
    ("eleutherai/pythia*", Family("gpt_neox", "neox", precision="float16")),
    ("eleutherai/gpt-neox*", Family("gpt_neox", "neox", precision="float16")),
    ("*dolly*", Family("gpt_neox", "neox", precision=_HALF)),
    ("eleutherai/gpt-neo*", Family("gpt_neo", "gpt2")),
    ("eleutherai/gpt-j*", Family("gptj", "gpt2")),
    ("state-spaces/mamba*", Family("mamba", "neox")),
    ("facebook/opt*", Family("opt", "opt", precision="float16")),
    ("facebook/galactica*", Family("opt", "opt", precision="float16")),
    ("*distilgpt2*", Family("gpt2", "gpt2")),
    ("*dialogpt*", Family("gpt2", "gpt2", chat=True)),
    ("*gpt2*", Family("gpt2", "gpt2")),
    # Encoder and decoder.
    ("*mt5*", Family("mt5", "t5")),
    ("*byt5*", Family("t5", "t5")),
    ("*flan-t5*", Family("t5", "t5", values={"feed_forward_proj": "gated-gelu"})),
    ("*t5*", Family("t5", "t5")),
    ("facebook/mbart*", Family("mbart", "mbart")),
    ("*bart*", Family("bart", "roberta")),
    ("*pegasus*", Family("pegasus", "t5")),
    ("helsinki-nlp/*", Family("marian", "marian")),
    ("facebook/m2m100*", Family("m2m_100", "mbart")),
    ("allenai/led*", Family("led", "roberta")),
    ("*whisper*", Family("whisper", "whisper")),
    # Encoders.
    ("sentence-transformers/all-mpnet*", Family("mpnet", "mpnet", sentence_embeddings=True)),
    ("*all-mpnet*", Family("mpnet", "mpnet", sentence_embeddings=True)),
    ("*paraphrase-mpnet*", Family("mpnet", "mpnet", sentence_embeddings=True)),
    (
        "sentence-transformers/*distilroberta*",
        Family("roberta", "roberta", sentence_embeddings=True),
    ),
    ("sentence-transformers/*distilbert*", Family("distilbert", "bert", sentence_embeddings=True)),
    ("sentence-transformers/*", Family("bert", "bert", "BertModel", sentence_embeddings=True)),
    ("*minilm*", Family("bert", "bert", "BertModel", sentence_embeddings=True)),
    ("baai/bge-m3*", Family("xlm-roberta", "xlm", sentence_embeddings=True)),
    ("baai/bge*", Family("bert", "bert", "BertModel", sentence_embeddings=True)),
    ("thenlper/gte*", Family("bert", "bert", "BertModel", sentence_embeddings=True)),
    ("intfloat/e5*", Family("bert", "bert", "BertModel", sentence_embeddings=True)),
    ("microsoft/mpnet*", Family("mpnet", "mpnet")),
    ("*distilbert*", Family("distilbert", "bert")),
    ("*mobilebert*", Family("mobilebert", "bert")),
    ("*modernbert*", Family("modernbert", "modernbert")),
    ("*camembert*", Family("camembert", "xlm")),
    ("*deberta-v3*", Family("deberta-v2", "deberta")),
    ("*deberta-v2*", Family("deberta-v2", "deberta")),
    ("*deberta*", Family("deberta", "deberta")),
    ("*xlm-roberta*", Family("xlm-roberta", "xlm")),
    ("*distilroberta*", Family("roberta", "roberta")),
    ("*roberta*", Family("roberta", "roberta")),
    ("*longformer*", Family("longformer", "roberta")),
    ("*electra*", Family("electra", "bert")),
    ("*albert*", Family("albert", "albert")),
    ("*xlnet*", Family("xlnet", "albert")),
    ("*bert*", Family("bert", "bert")),
    # Images, sound, both.
    ("*clip*", Family("clip", "clip")),
    ("google/siglip*", Family("siglip", "t5")),
    ("google/vit*-in21k*", Family("vit", None, "ViTModel")),
    ("google/vit*", _classifier("vit", "ViTForImageClassification")),
    ("facebook/deit*", _classifier("deit", "DeiTForImageClassification")),
    ("microsoft/beit*", _classifier("beit", "BeitForImageClassification")),
    ("microsoft/swin*", _classifier("swin", "SwinForImageClassification")),
    ("microsoft/resnet*", _classifier("resnet", "ResNetForImageClassification")),
    ("facebook/convnext*", _classifier("convnext", "ConvNextForImageClassification")),
    ("facebook/dinov2*", Family("dinov2", None, "Dinov2Model")),
    (
        "facebook/detr*",
        Family("detr", None, "DetrForObjectDetection", values={"use_timm_backbone": False}),
    ),
    ("nvidia/segformer*", _classifier("segformer", "SegformerForImageClassification")),
    ("nvidia/mit-*", _classifier("segformer", "SegformerForImageClassification")),
    ("facebook/wav2vec2*960h", Family("wav2vec2", "wav2vec2", "Wav2Vec2ForCTC")),
    ("facebook/wav2vec2*", Family("wav2vec2", "wav2vec2", "Wav2Vec2ForPreTraining")),
    ("facebook/hubert*", Family("hubert", None, "HubertModel")),
    ("microsoft/wavlm*", Family("wavlm", None, "WavLMModel")),
]


def family_of(name: str) -> Family | None:
    """The family of a repository on the Hub, None for an unknown name."""
    lowered = name.lower()
    return next(
        (found for pattern, found in _BY_NAME if fnmatch.fnmatchcase(lowered, pattern)), None
    )


def tokenizer_of_type(model_type: str) -> str:
    """The kind of tokenizer that an architecture's best-known models have."""
    kinds = {family.model_type: family.tokenizer for _, family in reversed(_BY_NAME)}
    return kinds.get(model_type) or "llama2"


_BY_TASK = {
    "SequenceClassification": Family("bert", "bert"),
    "TokenClassification": Family("bert", "bert"),
    "QuestionAnswering": Family("bert", "bert"),
    "MaskedLM": Family("bert", "bert"),
    "MultipleChoice": Family("bert", "bert"),
    "Seq2SeqLM": Family("t5", "t5"),
    "ImageClassification": Family("vit", None, "ViTForImageClassification"),
    "SpeechSeq2Seq": Family("whisper", "whisper"),
    "AudioClassification": Family("wav2vec2", "wav2vec2"),
    "CTC": Family("wav2vec2", "wav2vec2"),
}


def family_for_task(class_name: str) -> Family:
    """A stand-in for an unknown repository, chosen by the class that loads it (``AutoModelFor…``)."""
    for task, family in _BY_TASK.items():
        if task in class_name:
            return family
    return Family("llama", "llama2", precision=_HALF, chat=True)
