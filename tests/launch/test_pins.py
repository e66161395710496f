from __future__ import annotations

from pathlib import Path

import pytest
from ranksafe.launch.pins import AskedFor, pinned_versions


def _pins(folder: Path, root: Path | None = None) -> dict[str, str]:
    found = pinned_versions(folder, folder if root is None else root)
    return {name: fact.value for name, fact in found.items() if name != "python"}


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("transformers==4.39.3", "4.39.3"),
        ("Transformers[torch] == 4.39.3  # as in the paper", "4.39.3"),
        ("transformers==4.39.3 --hash=sha256:00", "4.39.3"),
        ("transformers==4.39.3 ; sys_platform == 'linux'", "4.39.3"),
        ("transformers===4.39.3", "4.39.3"),
        ("transformers>=5.3.0,<5.4.0", "5.3.0"),
        ("transformers~=4.46.1", "4.46.1"),
        ("transformers~=4.46.1+cu124", "4.46.1"),
        ("transformers>=4.46.1+cu124,<4.47", "4.46.1"),
        ("transformers==4.46.*", "4.46"),
        ("transformers<4.48,>=4.47.1", "4.47.1"),
        ("transformers~=4.46", None),
        ("transformers>=4.46", None),
        ("transformers<5", None),
        ("transformers>=4.46.0,!=4.47.0,<6", None),
        ("transformers", None),
        ("transformers @ git+https://example.org/transformers", None),
        ("# transformers==4.39.3", None),
        ("-r transformers==4.39.3", None),
        ("transformers==", None),
        (f"transformers=={'9' * 10_000}", None),
        (f"transformers>=4.{'9' * 150}", None),
        (f"transformers==4.39.3; {'(' * 5_000}", "4.39.3"),
        ("transformers==4.39.3\ntransformers==4.40.0", None),
        ("transformers==4.39.3\ntransformers==4.39.3", "4.39.3"),
    ],
)
def test_a_line_of_requirements(tmp_path: Path, line: str, version: str | None) -> None:
    (tmp_path / "requirements.txt").write_text(f"requests==2.0\n{line}\n")
    assert _pins(tmp_path) == ({} if version is None else {"transformers": version})


def test_the_name_without_its_s(tmp_path: Path) -> None:
    (tmp_path / "requirement.txt").write_text("torch==1.13.1\n")
    assert _pins(tmp_path) == {"torch": "1.13.1"}


def test_the_source_is_the_file(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==1.13.1+cu117\n")
    fact = pinned_versions(tmp_path, tmp_path)["torch"]
    assert (fact.value, fact.source) == ("1.13.1+cu117", str(tmp_path / "requirements.txt"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '[project]\ndependencies = ["transformers>=5.3.0,<5.4.0", "trl>=1.0,<2.0"]\n',
            {"transformers": "5.3.0"},
        ),
        ('[project]\ndependencies = "transformers==4.39.3"\n', {}),
        ("[project]\ndependencies = [4]\n", {}),
        ("project = 1\n", {}),
        ("[project\n", {}),
    ],
)
def test_pyproject(tmp_path: Path, text: str, expected: dict[str, str]) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert _pins(tmp_path) == expected


def test_the_nearest_file_that_names_a_library_decides(tmp_path: Path) -> None:
    inner = tmp_path / "examples" / "audio"
    inner.mkdir(parents=True)
    outside = "torch==1.0.0\n"
    (tmp_path / "requirements.txt").write_text(outside)
    root = tmp_path / "examples"
    (root / "requirements.txt").write_text("transformers==4.39.3\ntrl==0.9.6\npeft==0.11.1\n")
    (inner / "requirements.txt").write_text("transformers==4.41.0\npeft>=0.10\n")
    (inner / "pyproject.toml").write_text('[project]\ndependencies = ["transformers>=4"]\n')
    assert _pins(inner, root) == {"transformers": "4.41.0", "trl": "0.9.6"}
    assert _pins(inner, tmp_path)["torch"] == "1.0.0"
    assert _pins(inner, tmp_path / "elsewhere") == {"transformers": "4.41.0"}


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("  - pytorch=1.8.1", "1.8.1"),
        ("  - pytorch==1.8.1  # with cuda", "1.8.1"),
        ("  - pytorch=1.8", "1.8"),
        ("  - pytorch=1.8.*", "1.8"),
        ("  - pytorch=1.8.1=py3.8_cuda10.2_cudnn7.6.5_0", "1.8.1"),
        ("  - pytorch::pytorch=1.8.1", "1.8.1"),
        ("  - 'pytorch=1.8.1'", "1.8.1"),
        ("  - pip:\n    - torch==1.8.1", "1.8.1"),
        ('  - pip:\n    - "torch==1.8.1+cu111"', "1.8.1+cu111"),
        ("  - pytorch >=1.8,<1.9", "1.8"),
        ("  - pytorch=1", None),
        ("  - pytorch", None),
        ("  - pytorch>=1.8", None),
        ("  # - pytorch=1.8.1", None),
        ("  - pytorch=1.8.1\n  - pip:\n    - torch==2.1.0", None),
        ("  - pytorch=" + "1." * 50_000, None),
    ],
)
@pytest.mark.parametrize("name", ["environment.yml", "environment.yaml", "env_cpu.yml"])
def test_a_line_of_an_environment_of_conda(
    tmp_path: Path, name: str, line: str, version: str | None
) -> None:
    text = f"name: own\nchannels:\n  - pytorch\ndependencies:\n  - python=3.8\n{line}\n"
    (tmp_path / name).write_text(text)
    assert _pins(tmp_path) == ({} if version is None else {"torch": version})


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("pip install torch==1.11.0+cu113 --extra-index-url https://example.org", "1.11.0+cu113"),
        ("python -m pip install -q 'torch==1.11.0' \\\n  tqdm", "1.11.0"),
        ("apt-get install -y git && pip3 install tqdm \\\n  torch==1.11.0 # old", "1.11.0"),
        ("RUN conda install -y -c pytorch pytorch=1.11 cudatoolkit=11.3", "1.11"),
        ("conda create -n own python=3.8 pytorch==1.11.0 -c pytorch", "1.11.0"),
        ("pip install torch", None),
        ("pip install torch>=1.11", None),
        ("# pip install torch==1.11.0", None),
        ("pip install tqdm # torch==1.11.0", None),
        ("echo torch==1.11.0", None),
        ("pip install tqdm; echo torch==1.11.0", None),
        ("pip install torch==1.11.0\npip install torch==2.0.0", None),
    ],
)
@pytest.mark.parametrize("name", ["install.sh", "Dockerfile"])
def test_a_command_that_installs(tmp_path: Path, name: str, text: str, version: str | None) -> None:
    (tmp_path / name).write_text(f"FROM none\n{text}\n")
    assert _pins(tmp_path) == ({} if version is None else {"torch": version})


def test_scripts_have_to_agree(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text("pip install torch==1.11.0 trl==0.9.6\n")
    (tmp_path / "b.sh").write_text("pip install torch==2.1.0 trl==0.9.6\n")
    assert _pins(tmp_path) == {"trl": "0.9.6"}
    (tmp_path / "requirements.txt").write_text("torch==2.0.1\n")
    assert _pins(tmp_path) == {"torch": "2.0.1", "trl": "0.9.6"}


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("```\npip install torch==1.10.0 \\\n  torchvision\n```", "1.10.0"),
        ("2. `conda install pytorch==1.8.0 torchvision -c pytorch`", "1.8.0"),
        ("Install PyTorch (pip install torch==1.10.0+cu111)", "1.10.0+cu111"),
        ("(pip install torch==1.10.0)", "1.10.0"),
        ("- torch=1.5", "1.5"),
        ("* `torch==1.5.1`", "1.5.1"),
        ("- torch >= 1.5, < 1.6", "1.5"),
        ("- torch >= 1.5", None),
        ("- torch=1.5 or whatever you have", None),
        ("We had PyTorch 1.5.", None),
        ("pip install torch==1.9.0\n\nor\n\npip install torch==1.10.0", None),
        ("pip install torch\n\nor\n\npip install torch==1.10.0", None),
        ("- PyTorch 1.5 or higher\n\npip install torch==1.10.0", None),
        ("You need **PyTorch** (1.7+):\n\npip install torch==1.10.0", None),
        ("- Python 3.6+\n\npip install torch==1.10.0", "1.10.0"),
        ("PyTorch 1.7\u53ca\u4ee5\u4e0a\n\npip install torch==1.10.0", None),
    ],
)
@pytest.mark.parametrize("name", ["README.md", "Readme_en.md", "INSTALL.rst", "docs/install.md"])
def test_what_readers_are_told_to_install(
    tmp_path: Path, name: str, text: str, version: str | None
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / name).write_text(f"# Own\n\n{text}\n", encoding="utf-8")
    assert _pins(tmp_path) == ({} if version is None else {"torch": version})


def test_pages_tell_what_no_list_does(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("pip install torch==1.12.1 trl==0.9.6 peft==0.11.1\n")
    (tmp_path / "requirements.txt").write_text("torch>=1.2\ntrl==0.8.0\npeft\n")
    assert _pins(tmp_path) == {"trl": "0.8.0", "peft": "0.11.1"}


def test_a_name_alone_does_not_hide_what_is_asked_for_above(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "requirements.txt").write_text("torch==1.13.1\n")
    (inner / "requirements.txt").write_text("torch\n")
    assert _pins(inner, tmp_path) == {"torch": "1.13.1"}


def test_environments_have_to_agree(tmp_path: Path) -> None:
    for name, version in (("cpu.yml", "1.11.0"), ("gpu.yml", "2.1.0")):
        (tmp_path / name).write_text(f"dependencies:\n  - pytorch={version}\n  - numpy=1.21.2\n")
    assert _pins(tmp_path) == {"numpy": "1.21.2"}


def test_python_itself(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("conda create -n own python=3.7 -y\n")
    assert pinned_versions(tmp_path, tmp_path)["python"].value == "3.7"


def test_folders_that_are_known_are_not_read_again(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "requirements.txt").write_text("torch==1.13.1\n")
    known: dict[Path, AskedFor] = {}
    assert pinned_versions(tmp_path, tmp_path, known)["torch"].value == "1.13.1"
    (tmp_path / "requirements.txt").unlink()
    assert pinned_versions(inner, tmp_path, known)["torch"].value == "1.13.1"
