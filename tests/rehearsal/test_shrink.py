"""Models, tokenizers and datasets that are not on disk are replaced by small ones, and each replacement is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranksafe.rehearsal.inject.ranksafe_rehearsal.shrink import narrow, splits
from ranksafe.rehearsal.inject.ranksafe_rehearsal.shrink.families import family_of
from ranksafe.rehearsal.inject.ranksafe_rehearsal.shrink.known_datasets import known

from .conftest import INJECTED, Rehearse, Rehearsed

SCRIPTS = Path(__file__).parent / "shrink_scripts"


@pytest.fixture(scope="module")
def one_process(rehearsal_environment, tmp_path_factory) -> Rehearsed:
    from .conftest import run_rehearsal

    folder = tmp_path_factory.mktemp("shrink")
    return run_rehearsal(
        rehearsal_environment,
        folder,
        SCRIPTS / "one_process.py",
        shrink="auto",
        offline=True,
        environment={"HF_HOME": str(folder / "huggingface")},
    )


def _said(rehearsed: Rehearsed, key: str) -> str:
    lines = [line[len(key) :].strip() for line in rehearsed.lines if line.startswith(key + " ")]
    assert lines, rehearsed.stdout + rehearsed.stderr
    return lines[0]


def _modified(rehearsed: Rehearsed) -> set[str]:
    return {event["message"]["en"] for event in rehearsed.events("modified")}


@pytest.mark.long
def test_all_ranks_get_the_same_small_model_and_the_journal_names_it(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    rehearsed = rehearse(
        SCRIPTS / "two_ranks.py",
        launcher="torchrun",
        shrink="auto",
        offline=True,
        environment={"HF_HOME": str(tmp_path)},
    )
    assert rehearsed.returncode == 0, rehearsed.stderr
    for key in ("WEIGHTS", "TEXT", "KIND"):
        said = [line for line in rehearsed.lines if line.startswith(key)]
        assert len(said) == 2, said
        assert len(set(said)) == 1, said
    assert (
        "KIND LlamaForCausalLM torch.bfloat16 2 meta-llama/Llama-3.1-8B-Instruct" in rehearsed.lines
    )
    assert _modified(rehearsed) == {
        "model meta-llama/Llama-3.1-8B-Instruct → 2 layers, hidden 64, random weights (llama, known by its name)",
        "tokenizer of meta-llama/Llama-3.1-8B-Instruct → a small one of the same kind",
        "dataset trl-lib/Capybara → 512 synthetic rows per split with the same columns",
    }
    per_process = [
        event["message"]["en"] for event in rehearsed.events("modified") if event["rank"] == 0
    ]
    assert len(per_process) == len(set(per_process))


@pytest.mark.long
def test_a_small_model_on_disk_is_left_alone(one_process: Rehearsed) -> None:
    assert _said(one_process, "SMALL") == "True 3"
    assert not [text for text in _modified(one_process) if "/tiny" in text]


def test_a_large_model_on_disk_keeps_its_configuration_and_its_device_map(
    one_process: Rehearsed,
) -> None:
    assert _said(one_process, "LARGE") == "2 2 1234.0 ['0', '1']"


def test_code_from_a_repository_is_never_executed(one_process: Rehearsed) -> None:
    assert "brings its own code" in _said(one_process, "REMOTE")
    assert _said(one_process, "EXECUTED") == "False"


def test_the_loaded_objects_carry_their_own_name(one_process: Rehearsed) -> None:
    name = "distilbert/distilbert-base-uncased"
    assert _said(one_process, "NAME") == f"{name} {name} {name}"
    assert _said(one_process, "CLASSES") == "[2, 3] one pair"
    assert _said(one_process, "SAVED") == "3"


def test_what_is_not_known_is_a_limit_with_a_way_out(one_process: Rehearsed) -> None:
    assert "SimulationLimit" in _said(one_process, "UNKNOWN")
    assert "--shrink on" in _said(one_process, "UNKNOWN")
    assert "SimulationLimit" in _said(one_process, "NO DATA")
    # The folder may be there where the GPUs are.
    assert "SimulationLimit" in _said(one_process, "MISSING")
    limits = [
        event["what"] for event in one_process.events("limit") if event["kind"] == "unavailable"
    ]
    assert limits.count("nobody/has-this") == 2
    unavailable = one_process.events("unavailable")
    assert unavailable
    assert all(event["message"]["zh_cn"] for event in unavailable)


def test_a_wrong_split_is_the_users_error(one_process: Rehearsed) -> None:
    assert _said(one_process, "WRONG").startswith('ValueError: Unknown split "trian"')


def test_attention_kernels_fall_back_and_say_so(one_process: Rehearsed) -> None:
    assert _said(one_process, "FLASH") == "sdpa"
    assert "attention flash_attention_2 → sdpa" in _modified(one_process)


def test_datasets_keep_their_columns_splits_and_slices(one_process: Rehearsed) -> None:
    assert _said(one_process, "SPLITS") == "['test', 'train', 'unsupervised'] ['neg', 'pos']"
    assert _said(one_process, "SELECTED") == "512"
    assert _said(one_process, "HELD OUT") == "['test', 'train']"
    assert _said(one_process, "SLICE") == "25"
    assert _said(one_process, "LISTED") == "[9, 512]"
    assert "text" in _said(one_process, "STREAM")
    assert _said(one_process, "CSV") == "512"
    assert "dataset csv → its first 512 of 700 rows" in _modified(one_process)


def test_a_synthetic_model_for_an_unknown_name_must_be_asked_for(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    rehearsed = rehearse(
        "from transformers import AutoModelForSequenceClassification as A\n"
        "print(type(A.from_pretrained('nobody/has-this')).__name__)\n",
        shrink="on",
        offline=True,
        environment={"HF_HOME": str(tmp_path)},
    )
    assert rehearsed.lines == ["BertForSequenceClassification"], rehearsed.stderr


def test_shrinking_can_be_turned_off(rehearse: Rehearse, tmp_path: Path) -> None:
    rehearsed = rehearse(
        "from transformers import AutoConfig\nAutoConfig.from_pretrained('gpt2')\n",
        shrink="off",
        offline=True,
        environment={"HF_HOME": str(tmp_path)},
    )
    assert rehearsed.returncode == 1
    assert "OSError" in rehearsed.stderr
    assert not rehearsed.events("modified")


def test_heads_divide_the_width_and_groups_stay_groups() -> None:
    values = {
        "model_type": "llama",
        "hidden_size": 8192,
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 28672,
        "rope_parameters": {"rope_type": "default", "mrope_section": [16, 24, 24]},
        "layer_types": ["full"] * 79 + ["sliding"],
    }
    small = narrow.narrowed(values, narrow.Sizes())
    assert (small["hidden_size"], small["num_attention_heads"], small["head_dim"]) == (64, 4, 16)
    assert small["num_key_value_heads"] == 2
    assert sum(small["rope_parameters"]["mrope_section"]) == small["head_dim"] // 2
    assert small["layer_types"] == ["full", "sliding"]
    assert values["hidden_size"] == 8192


def test_parts_with_a_configuration_of_their_own_are_narrowed_too() -> None:
    values = {
        "text_config": {"hidden_size": 4096, "num_experts": 128},
        "vision_config": {"depth": 32},
    }
    small = narrow.narrowed(values, narrow.Sizes())
    assert small == {
        "text_config": {"hidden_size": 64, "num_experts": 4},
        "vision_config": {"depth": 2},
    }


@pytest.mark.parametrize(
    ("split", "rows"),
    [
        ("train", 512),
        ("train[:100]", 100),
        ("train[10:30]", 20),
        ("test[:1%]", 100),
        ("train[-5:]", 5),
    ],
)
def test_slices_of_splits(split: str, rows: int) -> None:
    assert [part.rows(512) for part in splits.parsed(split)] == [rows]


def test_names_of_the_hub() -> None:
    expected = {
        "meta-llama/Llama-3.1-8B": "llama",
        "Qwen/Qwen3-30B-A3B": "qwen3_moe",
        "google-bert/bert-base-cased": "bert",
        "FacebookAI/roberta-base": "roberta",
        "google-t5/t5-small": "t5",
        "openai/clip-vit-base-patch32": "clip",
        "microsoft/deberta-v3-base": "deberta-v2",
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B": "qwen2",
    }
    found = {name: family.model_type for name in expected if (family := family_of(name))}
    assert found == expected
    assert family_of("nobody/has-this") is None


def test_configurations_of_a_dataset_differ() -> None:
    first, second = known("nyu-mll/glue", "mrpc"), known("glue", "mnli")
    assert first is not None
    assert "sentence1" in first.columns
    assert second is not None
    assert "validation_matched" in second.splits
    assert known("glue", "nothing") is None


@pytest.mark.long
def test_nearly_every_architecture_can_be_narrowed(torch_python: Path) -> None:
    import subprocess

    done = subprocess.run(
        [str(torch_python), str(SCRIPTS / "all_architectures.py"), str(INJECTED)],
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    counts = dict(part.split("=") for part in done.stdout.splitlines()[-1].split()[1:])
    assert int(counts["built"]) >= 0.97 * int(counts["possible"])
    assert int(counts["trained"]) >= 0.9 * int(counts["decoders"])
