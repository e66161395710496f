"""The documentation site, built as `make site` builds it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from ranksafe.checker.registry import Registry
from ranksafe.checker.rule_folder import REPOSITORY
from ranksafe.localization import LANGUAGES, Language
from ranksafe.runs.explain.signatures import Signature, match, signatures
from rule_pages import ROOT
from website import errors, filters, pages
from website.readable import fits, wordings

from tests.site.built import Reference, Site

FOLDERS: dict[Language, str] = {"en": "", "zh-cn": "zh-cn/"}
CONFIGURATIONS: dict[Language, str] = {"en": "mkdocs.yml", "zh-cn": "mkdocs.zh-cn.yml"}
EDITOR = ("client/src/*.ts", "client/walkthrough/*.md", "package*.json", "l10n/*.json")
SERVER = ("server/ranksafe/**/*.py", "rules/ranksafe_rules/**/*.py")
BROWSERS = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
PLACE = re.compile(re.escape(REPOSITORY) + r"/([^\s\"'#)]+)(?:#([^\s\"')]+))?")


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.load(entry_points=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("site")
    for language, configuration in CONFIGURATIONS.items():
        command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
        command += ["--config-file", str(ROOT / configuration)]
        command += ["--site-dir", str(folder / FOLDERS[language])]
        environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        answer = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment
        )
        assert answer.returncode == 0, answer.stderr
    return Site(folder)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_rule_has_its_page(site: Site, registry: Registry, language: Language) -> None:
    for folder in registry.rules:
        code, name = folder.metadata.code, folder.metadata.name
        page = site.pages[FOLDERS[language] + pages.rule_address(code)]
        assert f"{name} ({code})" in page.text
        summary = folder.metadata.summary.in_language(language).replace("`", "")
        assert summary in unescape(re.sub("<[^>]+>", "", page.text)), code


def test_both_languages_have_the_same_pages(site: Site) -> None:
    chinese = {path for path in site.pages if path.startswith(FOLDERS["zh-cn"])}
    assert {path.removeprefix(FOLDERS["zh-cn"]) for path in chinese} == site.pages.keys() - chinese
    for path, page in site.pages.items():
        links = [each for each in page.references if each.tag == "a"]
        twin = path.removeprefix(FOLDERS["zh-cn"]) if path in chinese else FOLDERS["zh-cn"] + path
        start = Path(path).parent.as_posix()
        assert any(each.address == os.path.relpath(twin, start) for each in links), path


def test_every_document_is_a_page(registry: Registry) -> None:
    documents = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    sources = {page.source for page in pages.pages(pages.contents(registry))}
    assert {path for path in documents if not path.endswith(".zh-cn.md")} <= sources


def test_links_lead_somewhere(site: Site) -> None:
    problems = [
        problem
        for path, page in site.pages.items()
        for reference in page.references
        if not reference.is_elsewhere and not reference.address.startswith("data:")
        if (problem := site.problem(path, reference)) is not None
    ]
    assert problems == []


def test_a_broken_link_is_noticed(site: Site) -> None:
    for address in ("nowhere.html", "rules.html#rs999", "../outside.html", "#nothing"):
        assert site.problem("index.html", Reference("a", "href", address)) is not None
    assert site.problem("guide/ssh.html", Reference("a", "href", "../rules.html#rs201")) is None


def test_lists_are_read_as_repository_hosts_read_them(site: Site) -> None:
    """What stands in an item is indented by four; a host is content with less."""
    for path, page in site.pages.items():
        for paragraph in re.findall(r"<p>(.*?)</p>", page.text, re.DOTALL):
            assert not re.search(r"(?m)^(?:[-*] |\d+\. |\|)|```", paragraph), path


def test_links_into_the_repository_name_files_that_are_there(site: Site) -> None:
    named = {found[1] for page in site.pages.values() for found in PLACE.finditer(page.text)}
    assert "tests/corpus/recall/README.md" in named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_nothing_is_loaded_from_elsewhere(site: Site) -> None:
    for path, page in site.pages.items():
        loaded = [each for each in page.references if each.is_loaded]
        assert [each for each in loaded if each.is_elsewhere] == [], path
        assert "@import" not in page.text, path
        assert not re.search(r"url\(\s*[\"']?(?:https?:)?//", page.text), path
    for sheet in site.folder.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", text), sheet
    for script in (ROOT / "docs/theme/assets").glob("*.js"):
        assert "//" not in re.sub(r"(?m)^\s*//.*$", "", script.read_text(encoding="utf-8")), script


def test_the_pages_that_the_editor_opens_are_there(site: Site, registry: Registry) -> None:
    sources = {page.source: page.address for page in pages.pages(pages.contents(registry))}
    files = [path for pattern in (*EDITOR, *SERVER) for path in ROOT.glob(pattern)]
    texts = [path.read_text(encoding="utf-8") for path in files]
    opened = [*(folder.url for folder in registry.rules), *texts]
    found = [(place[1], place[2]) for text in opened for place in PLACE.finditer(text)]
    assert len(found) >= len(registry.rules)
    for source, anchor in found:
        assert source in sources, source
        for folder in FOLDERS.values():
            page = site.pages[folder + sources[source]]
            assert anchor is None or anchor in page.ids, f"{source}#{anchor}"


def test_the_repositorys_address_stands_in_one_place() -> None:
    """In programs; what a package says of itself can only be written out."""
    sources = ("client/**/*.ts", "client/walkthrough/*.md", "tools/**/*.py", *SERVER)
    files = [path for pattern in sources for path in ROOT.glob(pattern)]
    address = REPOSITORY.removesuffix("/blob/main")
    having = [path for path in files if address in path.read_text(encoding="utf-8")]
    assert [path.name for path in having] == ["rule_folder.py"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_filters_know_every_rule(site: Site, registry: Registry, language: Language) -> None:
    page = site.pages[f"{FOLDERS[language]}rules.html"]
    shown = [
        {name.removeprefix("data-"): value for name, value in row.items() if row[name]}
        for row in page.filtered
    ]
    key = lambda facts: sorted(facts.items())  # noqa: E731
    assert sorted(shown, key=key) == sorted(map(filters.facts, registry.rules), key=key)
    for name in ("symptom", "area", "level", "fix", "proof"):
        choices = re.search(rf'<select name="{name}">(.*?)</select>', page.text)
        assert choices is not None, name
        offered = set(re.findall('value="([^"]+)"', choices[1]))
        assert {facts[name] for facts in shown} <= offered, name
    assert {folder.metadata.code.lower() for folder in registry.rules} <= page.ids


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_known_message_is_listed(site: Site, registry: Registry, language: Language) -> None:
    listed = set(site.pages[f"{FOLDERS[language]}errors.html"].wordings)
    for signature in signatures():
        if is_listed(signature):
            assert set(wordings(signature.pattern.pattern)) <= listed, signature.kind
    known = [entry for _, found in errors.entries(registry) for entry in found]
    for folder in registry.rules:
        mine = [entry for entry in known if folder.metadata.code in entry.rules]
        assert bool(mine) or not list(errors.declared(folder)), folder.metadata.code
        assert all(set(entry.wordings) <= listed for entry in mine)


def is_listed(signature: Signature) -> bool:
    """Not an error that has nothing to do with several GPUs."""
    ordinary = [errors.known.signatures_about(name) for name in errors.ORDINARY]
    return not signature.plain and not any(signature in each for each in ordinary)


def test_real_messages_are_found_by_their_words(registry: Registry) -> None:
    lines = (ROOT / "tests/runs/logs/known_failures.jsonl").read_text(encoding="utf-8").splitlines()
    found = errors.entries(registry)
    kinds = 0
    for text in (json.loads(line)["text"] for line in lines):
        known = match(text)
        if known is not None and is_listed(known[0]):
            kinds += 1
            fitting = [
                signature
                for _, entries in found
                for entry in entries
                if any(fits(each, text) for each in entry.wordings)
                for signature in entry.signatures
            ]
            assert known[0] in fitting, text
    assert kinds > 50


def test_a_rule_is_named_only_where_its_own_message_leads(registry: Registry) -> None:
    """A text that several messages begin with says of none of them that it is the rule's."""
    named = {
        entry.wordings[0]: set(entry.rules)
        for _, found in errors.entries(registry)
        for entry in found
    }
    assert named["Detected mismatch between collectives on ranks"] == {"RS401", "RS407"}
    assert named["aten._foreach_… got mixed torch.Tensor and DTensor"] == set()
    assert "RS112" not in named["exited with exit code 137"]
    assert {"RS401", "RS412", "RS416"} <= named["detected by watchdog at work"]


def test_chinese_is_searched_by_words(site: Site) -> None:
    index = json.loads((site.folder / "zh-cn/search/search_index.json").read_text(encoding="utf-8"))
    text = "".join(entry["text"] for entry in index["docs"])
    assert "\u200b进程组\u200b" in text
    assert "\u200b进程\u200b" in text
    assert (site.folder / "zh-cn/search/search_index.js").is_file()


def test_it_works_as_files_without_a_network(site: Site, registry: Registry) -> None:
    seen = opened(site)
    assert seen["problems"] == []
    assert seen["elsewhere"] == []
    hangs = [folder for folder in registry.rules if filters.facts(folder)["symptom"] == "hangs"]
    for language in LANGUAGES:
        of_language = seen[language]
        assert of_language["all"] == len(registry.rules)
        assert sorted(of_language["hangs"]) == sorted(each.metadata.code for each in hangs)
        assert of_language["headings"] == 1
        assert of_language["text"] == ["RS310"]
        assert of_language["nothing"] == []
        assert "Timed out waiting …ms for recv operation" in of_language["pasted"]
        assert of_language["message"] == 1
        assert of_language["search"] == "rules/rs310.html"
    assert seen["en"]["heading"] != seen["zh-cn"]["heading"]
    assert seen["words"] > 0
    assert seen["switched"] == "zh-cn/rules/rs201.html"


def opened(site: Site) -> dict[str, Any]:
    """What Chromium shows of the files."""
    node = shutil.which("node")
    chromium = os.environ.get("RANKSAFE_CHROMIUM") or next(filter(os.path.exists, BROWSERS), None)
    if node is None or chromium is None or not (ROOT / "node_modules/playwright-core").is_dir():
        reason = "no node, chromium or node_modules/playwright-core (make test installs them)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    script = Path(__file__).with_name("open_site.mjs")
    answer = subprocess.run(
        [node, str(script), str(site.folder), str(ROOT / "build/site-screenshots")],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "RANKSAFE_CHROMIUM": chromium},
    )
    seen: dict[str, Any] = json.loads(answer.stdout)
    return seen
