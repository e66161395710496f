"""A pitfall in JupyterLab, in a real browser, through jupyterlab-lsp and the configuration that is shipped."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[2]
CONFIGURATION = REPOSITORY / "client" / "jupyter" / "ranksafe.json"
BROWSERS = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
SECONDS_TO_START = 120

CELLS = [
    "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments",
    """\
model = AutoModelForCausalLM.from_pretrained("gpt2", device_map="auto")
trainer = Trainer(model=model, args=TrainingArguments("out"))
trainer.train()""",
]
NOTEBOOK = {
    "cells": [
        {
            "cell_type": "code",
            "id": f"cell-{number}",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": source,
        }
        for number, source in enumerate(CELLS)
    ],
    "metadata": {"language_info": {"name": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def jupyterlab() -> Path:
    """The Python that has it."""
    script = REPOSITORY / "tools" / "environments.py"
    done = subprocess.run(
        [sys.executable, str(script), "jupyterlab"], check=True, stdout=subprocess.PIPE, text=True
    )
    return Path(done.stdout.strip())


@pytest.fixture
def address(jupyterlab: Path, tmp_path: Path) -> Iterator[str]:
    """Of a JupyterLab that shows a project of a file and a notebook."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").touch()
    (project / "train.py").write_text("\n".join(CELLS), encoding="utf-8")
    (project / "train.ipynb").write_text(json.dumps(NOTEBOOK), encoding="utf-8")
    configuration = tmp_path / "configuration" / "jupyter_server_config.d"
    configuration.mkdir(parents=True)
    shutil.copy(CONFIGURATION, configuration)
    settings = tmp_path / "settings" / "@jupyterlab" / "lsp-extension"
    settings.mkdir(parents=True)
    (settings / "plugin.jupyterlab-settings").write_text('{"activate": "on"}', encoding="utf-8")
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": str(tmp_path / "home"),
        "JUPYTER_CONFIG_DIR": str(configuration.parent),
        "JUPYTER_DATA_DIR": str(tmp_path / "data"),
        "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(tmp_path / "settings"),
    }
    options = ["--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0"]
    options += ["--IdentityProvider.token=", f"--ServerApp.root_dir={project}"]
    log = tmp_path / "jupyterlab.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [str(jupyterlab), "-m", "jupyterlab", *options],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        try:
            yield f"{_address(tmp_path / 'runtime', process, log)}lab/tree/"
        finally:
            process.terminate()


def _address(runtime: Path, process: subprocess.Popen[bytes], log: Path) -> str:
    until = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < until and process.poll() is None:
        for file in runtime.glob("jpserver-*.json"):
            return str(json.loads(file.read_text(encoding="utf-8"))["url"])
        time.sleep(0.1)
    pytest.fail(f"JupyterLab does not start:\n{log.read_text(encoding='utf-8')[-2000:]}")


@pytest.mark.parametrize("name", ["train.py", "train.ipynb"])
def test_a_pitfall_is_drawn_told_and_gone_when_it_is_mended(address: str, name: str) -> None:
    node = shutil.which("node")
    chromium = os.environ.get("RANKSAFE_CHROMIUM") or next(filter(os.path.exists, BROWSERS), None)
    if (
        node is None
        or chromium is None
        or not (REPOSITORY / "node_modules/playwright-core").is_dir()
    ):
        pytest.skip("no node, chromium or node_modules/playwright-core (make test installs them)")
    screenshot = REPOSITORY / "build" / "editor-screenshots" / f"jupyterlab-{name}.png"
    answer = subprocess.run(
        [node, str(HERE / "open_lab.mjs"), address + name, str(screenshot)],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "RANKSAFE_CHROMIUM": chromium},
    )
    seen = json.loads(answer.stdout)
    assert seen["under"] == '"auto"'
    assert seen["message"].startswith('device_map="auto" works under plain python')
    assert seen["message"].endswith("ranksafe")
