"""Columns and splits of well-known datasets of the Hugging Face Hub, for when they are not on disk.

Only names and types are kept, as the dataset viewers show them; the rows are made up.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass

from .rows import (
    Column,
    answered,
    answered_sum,
    answers,
    choices,
    choices_with_letters,
    classes,
    dialogue,
    empty_or_words,
    image,
    index,
    label,
    name,
    number,
    one_of,
    real,
    said,
    sound,
    tags,
    tokens,
    translation,
    truth,
    words,
    written_dialogue,
)

_TRAIN_TEST = ("train", "test")
_ALL = ("train", "validation", "test")
_TAGS = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-MISC", "I-MISC")


@dataclass(frozen=True)
class KnownDataset:
    """Columns by name, and the names of the splits."""

    columns: dict[str, Column]
    splits: tuple[str, ...] = ("train",)


def _pair(first: str, second: str, *names: str) -> KnownDataset:
    columns = {first: words(), second: words(), "label": label(*names), "idx": index()}
    return KnownDataset(columns, _ALL)


_GLUE = {
    "cola": KnownDataset(
        {"sentence": words(), "label": label("unacceptable", "acceptable"), "idx": index()}, _ALL
    ),
    "sst2": KnownDataset(
        {"sentence": words(), "label": label("negative", "positive"), "idx": index()}, _ALL
    ),
    "mrpc": _pair("sentence1", "sentence2", "not_equivalent", "equivalent"),
    "qqp": _pair("question1", "question2", "not_duplicate", "duplicate"),
    "stsb": KnownDataset(
        {"sentence1": words(), "sentence2": words(), "label": real(0, 5), "idx": index()}, _ALL
    ),
    "mnli": KnownDataset(
        _pair("premise", "hypothesis", "entailment", "neutral", "contradiction").columns,
        ("train", "validation_matched", "validation_mismatched", "test_matched", "test_mismatched"),
    ),
    "qnli": _pair("question", "sentence", "entailment", "not_entailment"),
    "rte": _pair("sentence1", "sentence2", "entailment", "not_entailment"),
    "wnli": _pair("sentence1", "sentence2", "not_entailment", "entailment"),
}
_REVIEWS = {"text": words(4), "label": label("neg", "pos")}
_SQUAD = {
    "id": name("q"),
    "title": words(),
    "context": words(6),
    "question": words(),
    "answers": answers(),
}
_ALPACA = {"instruction": words(), "input": empty_or_words(), "output": words(3), "text": words(5)}
_CHAT = {"messages": dialogue(2)}
_PREFERENCE = {
    "prompt": said("user"),
    "chosen": said("assistant", 2),
    "rejected": said("assistant", 2),
}
_WHOLE_PREFERENCE = {
    "chosen": answered(10),
    "rejected": answered(10),
    "score_chosen": real(),
    "score_rejected": real(),
}

_BY_NAME: list[tuple[str, KnownDataset]] = [
    # One sentence, one class.
    ("*imdb", KnownDataset(_REVIEWS, ("train", "test", "unsupervised"))),
    ("*rotten_tomatoes", KnownDataset(_REVIEWS, _ALL)),
    ("*yelp_review_full", KnownDataset({"label": classes(5), "text": words(4)}, _TRAIN_TEST)),
    ("*yelp_polarity", KnownDataset({"text": words(4), "label": label("1", "2")}, _TRAIN_TEST)),
    (
        "*amazon_polarity",
        KnownDataset(
            {"label": label("negative", "positive"), "title": words(), "content": words(3)},
            _TRAIN_TEST,
        ),
    ),
    (
        "*ag_news",
        KnownDataset(
            {"text": words(2), "label": label("World", "Sports", "Business", "Sci/Tech")},
            _TRAIN_TEST,
        ),
    ),
    ("*emotion", KnownDataset({"text": words(), "label": classes(6)}, _ALL)),
    (
        "setfit/sst2",
        KnownDataset(
            {"text": words(), "label": number(0, 1), "label_text": one_of("negative", "positive")},
            _ALL,
        ),
    ),
    (
        "*sst2",
        KnownDataset(
            {"idx": index(), "sentence": words(), "label": label("negative", "positive")}, _ALL
        ),
    ),
    (
        "*sst5",
        KnownDataset(
            {"text": words(), "label": number(0, 4), "label_text": one_of("bad", "good")}, _ALL
        ),
    ),
    (
        "*trec",
        KnownDataset(
            {"text": words(), "coarse_label": classes(6), "fine_label": classes(50)}, _TRAIN_TEST
        ),
    ),
    ("*banking77", KnownDataset({"text": words(), "label": classes(77)}, _TRAIN_TEST)),
    (
        "*dbpedia_14",
        KnownDataset({"label": classes(14), "title": words(), "content": words(3)}, _TRAIN_TEST),
    ),
    # Two sentences.
    (
        "*snli",
        KnownDataset(
            {
                "premise": words(),
                "hypothesis": words(),
                "label": label("entailment", "neutral", "contradiction"),
            },
            _ALL,
        ),
    ),
    (
        "*multi_nli",
        KnownDataset(
            {
                "premise": words(),
                "hypothesis": words(),
                "label": label("entailment", "neutral", "contradiction"),
            },
            ("train", "validation_matched"),
        ),
    ),
    (
        "sentence-transformers/all-nli",
        KnownDataset(
            {"anchor": words(), "positive": words(), "negative": words()}, ("train", "dev", "test")
        ),
    ),
    (
        "sentence-transformers/stsb",
        KnownDataset({"sentence1": words(), "sentence2": words(), "score": real()}, _ALL),
    ),
    (
        "sentence-transformers/natural-questions",
        KnownDataset({"query": words(), "answer": words(4)}),
    ),
    ("sentence-transformers/gooaq", KnownDataset({"question": words(), "answer": words(3)})),
    (
        "sentence-transformers/quora-duplicates",
        KnownDataset(
            {"anchor": words(), "positive": words(), "label": label("different", "duplicate")}
        ),
    ),
    ("*stsb*", KnownDataset({"sentence1": words(), "sentence2": words(), "score": real()}, _ALL)),
    # Questions.
    ("*squad_v2", KnownDataset(_SQUAD, ("train", "validation"))),
    ("*squad", KnownDataset(_SQUAD, ("train", "validation"))),
    (
        "*swag",
        KnownDataset(
            {
                "video-id": name("v"),
                "fold-ind": name("f"),
                "startphrase": words(),
                "sent1": words(),
                "sent2": words(),
                "gold-source": one_of("gold"),
                "ending0": words(),
                "ending1": words(),
                "ending2": words(),
                "ending3": words(),
                "label": label("0", "1", "2", "3"),
            },
            _ALL,
        ),
    ),
    (
        "*race",
        KnownDataset(
            {
                "example_id": name("e"),
                "article": words(6),
                "answer": one_of("A", "B", "C", "D"),
                "question": words(),
                "options": choices(4),
            },
            _ALL,
        ),
    ),
    (
        "*commonsense_qa",
        KnownDataset(
            {
                "id": name("c"),
                "question": words(),
                "choices": choices_with_letters(5),
                "answerKey": one_of("A", "B", "C"),
            },
            _ALL,
        ),
    ),
    (
        "*boolq",
        KnownDataset(
            {"question": words(), "passage": words(4), "answer": truth()}, ("train", "validation")
        ),
    ),
    # Words with classes.
    (
        "*conll2003",
        KnownDataset(
            {
                "id": name(""),
                "tokens": tokens(),
                "pos_tags": tags(9, *(f"P{i}" for i in range(47))),
                "chunk_tags": tags(9, *(f"C{i}" for i in range(23))),
                "ner_tags": tags(9, *_TAGS),
            },
            _ALL,
        ),
    ),
    (
        "*wnut_17",
        KnownDataset({"id": name(""), "tokens": tokens(), "ner_tags": tags(9, *_TAGS)}, _ALL),
    ),
    ("*smoltalk*", KnownDataset(_CHAT, _TRAIN_TEST)),
    # Plain text.
    ("*wikitext*", KnownDataset({"text": words(5)}, ("test", "train", "validation"))),
    ("*tiny_shakespeare", KnownDataset({"text": words(40)}, _ALL)),
    ("*tinystories*", KnownDataset({"text": words(6)}, ("train", "validation"))),
    (
        "*eli5*",
        KnownDataset(
            {"q_id": name("q"), "title": words(), "text": words(4), "answers.text": words(3)}, _ALL
        ),
    ),
    ("*openwebtext*", KnownDataset({"text": words(8)})),
    ("*bookcorpus*", KnownDataset({"text": words(1)})),
    (
        "*wikipedia",
        KnownDataset({"id": name(""), "url": name("u"), "title": words(), "text": words(8)}),
    ),
    (
        "*c4",
        KnownDataset(
            {"text": words(6), "timestamp": name("t"), "url": name("u")}, ("train", "validation")
        ),
    ),
    ("*fineweb*", KnownDataset({"text": words(8), "id": name(""), "token_count": number()})),
    ("*pile*", KnownDataset({"text": words(8)})),
    ("*english_quotes", KnownDataset({"quote": words(), "author": name("a"), "tags": tokens()})),
    ("stanfordnlp/imdb*", KnownDataset(_REVIEWS, ("train", "test", "unsupervised"))),
    # Summaries and translations.
    (
        "*cnn_dailymail",
        KnownDataset({"article": words(10), "highlights": words(2), "id": name("")}, _ALL),
    ),
    ("*xsum", KnownDataset({"document": words(8), "summary": words(), "id": name("")}, _ALL)),
    ("*samsum", KnownDataset({"id": name(""), "dialogue": words(5), "summary": words()}, _ALL)),
    (
        "*billsum",
        KnownDataset(
            {"text": words(10), "summary": words(2), "title": words()}, ("train", "test", "ca_test")
        ),
    ),
    ("*wmt16", KnownDataset({"translation": translation("de", "en", "ro")}, _ALL)),
    ("*wmt14", KnownDataset({"translation": translation("de", "en", "fr")}, _ALL)),
    ("*opus_books", KnownDataset({"id": name(""), "translation": translation("en", "fr", "de")})),
    ("*kde4", KnownDataset({"id": name(""), "translation": translation("en", "fr")})),
    # Instructions and conversations.
    ("*alpaca-cleaned*", KnownDataset(_ALPACA)),
    ("*alpaca*", KnownDataset(_ALPACA)),
    (
        "*dolly*",
        KnownDataset(
            {
                "instruction": words(),
                "context": empty_or_words(),
                "response": words(3),
                "category": one_of("open_qa", "closed_qa"),
            }
        ),
    ),
    (
        "*ultrachat_200k",
        KnownDataset(
            {"prompt": words(), "prompt_id": name("p"), "messages": dialogue(2)},
            ("train_sft", "test_sft", "train_gen", "test_gen"),
        ),
    ),
    ("*guanaco*", KnownDataset({"text": words(6)}, _TRAIN_TEST)),
    ("*openassistant*guanaco*", KnownDataset({"text": words(6)}, _TRAIN_TEST)),
    (
        "*open-platypus*",
        KnownDataset({"instruction": words(), "input": empty_or_words(), "output": words(3)}),
    ),
    (
        "*codealpaca*",
        KnownDataset({"instruction": words(), "input": empty_or_words(), "output": words(3)}),
    ),
    (
        "*twitter_complaints",
        KnownDataset({"Tweet text": words(), "ID": index(), "Label": number(0, 2)}, _TRAIN_TEST),
    ),
    (
        "ought/raft",
        KnownDataset(
            {
                "Tweet text": words(),
                "ID": index(),
                "Label": label("Unlabeled", "complaint", "no complaint"),
            },
            _TRAIN_TEST,
        ),
    ),
    # trl's own.
    ("trl-lib/ultrafeedback_binarized", KnownDataset(_WHOLE_PREFERENCE, _TRAIN_TEST)),
    ("trl-lib/ultrafeedback-prompt", KnownDataset({"prompt": said("user")}, _TRAIN_TEST)),
    ("trl-lib/ultrafeedback*", KnownDataset({"prompt": said("user")}, _TRAIN_TEST)),
    (
        "*ultrafeedback_binarized",
        KnownDataset(
            {
                "prompt": words(),
                "prompt_id": name("p"),
                "chosen": answered(10),
                "rejected": answered(10),
                "messages": answered(10),
                "score_chosen": real(),
                "score_rejected": real(),
            },
            ("train_prefs", "test_prefs", "train_sft", "test_sft"),
        ),
    ),
    (
        "trl-lib/capybara",
        KnownDataset(
            {"source": one_of("a", "b"), "messages": dialogue(2), "num_turns": number(2, 2)},
            _TRAIN_TEST,
        ),
    ),
    (
        "trl-lib/kto-mix-14k",
        KnownDataset(
            {"prompt": said("user"), "completion": said("assistant", 2), "label": truth()},
            _TRAIN_TEST,
        ),
    ),
    (
        "trl-lib/tldr-preference",
        KnownDataset({"prompt": words(4), "chosen": words(2), "rejected": words(2)}, _ALL),
    ),
    ("trl-lib/tldr", KnownDataset({"prompt": words(4), "completion": words(2)}, _ALL)),
    ("trl-lib/hh-rlhf-helpful-base", KnownDataset(_PREFERENCE, _TRAIN_TEST)),
    (
        "trl-lib/deepmath-103k",
        KnownDataset({"prompt": said("user"), "solution": one_of("$1$", "$2$")}, _TRAIN_TEST),
    ),
    (
        "trl-lib/math_shepherd",
        KnownDataset(
            {
                "prompt": words(),
                "completions": choices(3),
                "labels": Column(lambda source, row: [True, False, True]),
            },
            _TRAIN_TEST,
        ),
    ),
    (
        "trl-lib/lm-human-preferences-sentiment",
        KnownDataset({"prompt": words(), "chosen": words(), "rejected": words()}),
    ),
    ("*prefs*", KnownDataset(_WHOLE_PREFERENCE, _TRAIN_TEST)),
    ("trl-internal-testing/zen", KnownDataset(_CHAT, _TRAIN_TEST)),
    (
        "*hh-rlhf*",
        KnownDataset({"chosen": written_dialogue(), "rejected": written_dialogue()}, _TRAIN_TEST),
    ),
    ("trl-lib/*", KnownDataset(_CHAT, _TRAIN_TEST)),
    ("*gsm8k", KnownDataset({"question": words(2), "answer": answered_sum()}, _TRAIN_TEST)),
    (
        "*numinamath*",
        KnownDataset(
            {"problem": words(2), "solution": one_of("$1$", "$2$"), "messages": dialogue()},
            _TRAIN_TEST,
        ),
    ),
    # Images.
    ("*cifar10", KnownDataset({"img": image(32, 32), "label": classes(10)}, _TRAIN_TEST)),
    (
        "*cifar100",
        KnownDataset(
            {"img": image(32, 32), "fine_label": classes(100), "coarse_label": classes(20)},
            _TRAIN_TEST,
        ),
    ),
    (
        "*fashion_mnist",
        KnownDataset({"image": image(28, 28, "L"), "label": classes(10)}, _TRAIN_TEST),
    ),
    ("*mnist", KnownDataset({"image": image(28, 28, "L"), "label": classes(10)}, _TRAIN_TEST)),
    ("*food101", KnownDataset({"image": image(), "label": classes(101)}, ("train", "validation"))),
    (
        "*beans",
        KnownDataset(
            {
                "image_file_path": name("f"),
                "image": image(),
                "labels": label("angular_leaf_spot", "bean_rust", "healthy"),
            },
            _ALL,
        ),
    ),
    ("*cats_vs_dogs", KnownDataset({"image": image(), "labels": label("cat", "dog")})),
    ("*oxford*pet*", KnownDataset({"image": image(), "label": classes(37)}, _TRAIN_TEST)),
    ("*imagenet-1k", KnownDataset({"image": image(), "label": classes(1000)}, _ALL)),
    ("*pokemon*captions", KnownDataset({"image": image(), "text": words()})),
    # Sound.
    (
        "*common_voice*",
        KnownDataset(
            {"client_id": name("c"), "path": name("p"), "audio": sound(), "sentence": words()}, _ALL
        ),
    ),
    (
        "*librispeech*",
        KnownDataset(
            {"file": name("f"), "audio": sound(), "text": words(), "id": name("")},
            ("train.clean.100", "validation.clean", "test.clean", "validation"),
        ),
    ),
    (
        "*minds14",
        KnownDataset(
            {
                "path": name("p"),
                "audio": sound(),
                "transcription": words(),
                "english_transcription": words(),
                "intent_class": classes(14),
                "lang_id": classes(14),
            }
        ),
    ),
    ("*superb*", KnownDataset({"file": name("f"), "audio": sound(), "label": classes(12)}, _ALL)),
]


_WHOLE = frozenset(
    """imdb stanfordnlp/imdb rotten_tomatoes cornell-movie-review-data/rotten_tomatoes glue nyu-mll/glue
ag_news fancyzhx/ag_news squad rajpurkar/squad yelp_review_full yelp/yelp_review_full yelp_polarity
fancyzhx/yelp_polarity amazon_polarity fancyzhx/amazon_polarity dbpedia_14 fancyzhx/dbpedia_14 mnist
ylecun/mnist""".split()
)
"""Those of which all columns and splits are above, as huggingface/datasets listed them (``datasets/`` at 040102f1). Of
others some may be left out, or another owner's has the name."""


def is_whole(dataset: str) -> bool:
    """Whether the real one is known to have no other columns and splits."""
    return dataset.lower() in _WHOLE


def known(dataset: str, configuration: str | None) -> KnownDataset | None:
    """The columns of a dataset on the Hub by its id, None for an unknown one."""
    lowered = dataset.lower()
    if lowered in ("glue", "nyu-mll/glue"):
        return _GLUE.get((configuration or "").lower())
    return next(
        (found for pattern, found in _BY_NAME if fnmatch.fnmatchcase(lowered, pattern)), None
    )
