"""A report as a real browser shows it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BROWSERS = (
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
    "/usr/bin/google-chrome-stable",
)
SCREENSHOTS = ROOT / "build" / "report-screenshots"


def opened(
    text: str,
    tmp_path: Path,
    name: str,
    *,
    scheme: str = "light",
    language: str = "",
    media: str = "",
) -> dict[str, Any]:
    """What Chromium shows, and what it tried to load; the screenshot is kept below build/."""
    node = shutil.which("node")
    chromium = next((each for each in BROWSERS if Path(each).exists()), None)
    chromium = os.environ.get("RANKSAFE_CHROMIUM") or chromium
    if node is None or chromium is None or not (ROOT / "node_modules/playwright-core").is_dir():
        reason = "no node, chromium or node_modules/playwright-core (make test installs them)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    page = tmp_path / f"{name}.html"
    page.write_text(text, encoding="utf-8")
    script = Path(__file__).with_name("open_report.mjs")
    words = [
        node,
        str(script),
        str(page),
        scheme,
        str(SCREENSHOTS / f"{name}.png"),
        language,
        media,
    ]
    environment = {**os.environ, "RANKSAFE_CHROMIUM": chromium}
    answer = subprocess.run(
        words, check=True, capture_output=True, text=True, timeout=120, env=environment
    )
    seen: dict[str, Any] = json.loads(answer.stdout)
    return seen


def harmless(seen: dict[str, Any]) -> None:
    assert seen["dialogs"] == []
    assert seen["problems"] == []
    assert seen["requests"] == []
    assert seen["overflow"] <= 0, "the page is wider than the window"
