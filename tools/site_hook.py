"""What mkdocs (mkdocs.yml, mkdocs.zh-cn.yml) calls while it builds the documentation site.

The repository's own files are the pages: nothing is copied, and links that lead from file to file on a repository host
lead from page to page here.
"""

from __future__ import annotations

import logging
import posixpath
import re
from functools import cache
from pathlib import Path

import jieba
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from ranksafe.checker.registry import Registry
from ranksafe.checker.rule_folder import RuleFolder
from ranksafe.localization import Language
from rule_pages import ROOT
from website import errors, filters, links, pages, rules

CHINESE_FOLDER = "zh-cn"
OTHER_LANGUAGE = "/other-language"
"""Stands in every page for its twin's address, which depends on the page."""
CODES: dict[Language, str] = {"en": "en", "zh-cn": "zh"}
NAMES: dict[Language, str] = {"en": "English", "zh-cn": "中文"}
ENGLISH_ONLY = '!!! note ""\n    本页只有英文。\n\n'
WORDS = ("进程组", "集合通信", "数据并行", "学习率")
"""Terms that the search would take apart."""
ICON = "client/icon.svg"


@cache
def registry() -> Registry:
    """The rules that come with ranksafe."""
    return Registry.load(entry_points=False)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Says where everything stands, in the language of this build."""
    config.nav = pages.navigation(pages.contents(registry()), language_of(config))
    other: Language = "en" if language_of(config) == "zh-cn" else "zh-cn"
    config.extra["alternate"] = [
        {"name": NAMES[other], "lang": CODES[other], "link": OTHER_LANGUAGE}
    ]
    # It would tell how it loads its dictionary.
    jieba.setLogLevel(logging.WARNING)
    for word in WORDS:
        jieba.add_word(word)
    # It needs the site's address, which is not known.
    config.theme.static_templates.discard("404.html")
    return config


def language_of(config: MkDocsConfig) -> Language:
    """The language that is built."""
    return next(each for each, code in CODES.items() if code == config.theme["language"])


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Takes the repository's files instead of those of one folder, each under its path from the repository's root."""
    found = Files([file for file in files if file.src_dir != config.docs_dir])
    language = language_of(config)
    for page in pages.pages(pages.contents(registry())):
        source = pages.in_language(page.source, language)
        if page.source == pages.ERRORS:
            text = errors.page(registry(), language)
            file = File.generated(config, source, content=text)
        else:
            file = File.generated(config, source, abs_src_path=str(ROOT / source))
        file.dest_uri = page.address
        # The Chinese start page would not be taken for one.
        file.name = Path(page.address).stem
        found.append(file)
    for picture in sorted((ROOT / "docs/images").iterdir()):
        found.append(_asset(config, picture, f"images/{picture.name}"))
    found.append(_asset(config, ROOT / ICON, "assets/icon.svg"))
    return found


def _asset(config: MkDocsConfig, path: Path, address: str) -> File:
    source = path.relative_to(ROOT).as_posix()
    file = File.generated(config, source, abs_src_path=str(path))
    file.dest_uri = address
    return file


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Adds what only the site has, and mends the links."""
    language, source = language_of(config), page.file.src_uri
    folder = rule_of(page)
    is_table = source == pages.in_language(pages.RULES, language)
    page.meta["hide"] = ["navigation"] if page.parent is None else ["toc"] if is_table else []
    if folder is not None:
        page.meta["description"] = folder.metadata.summary.in_language(language)
        markdown = rules.page(markdown, folder, registry(), language)
    elif is_table:
        introduction, heading, table = markdown.partition("\n## ")
        markdown = f"{introduction}\n{filters.rules_form(language)}\n{heading}{table}"
    elif language == "zh-cn" and not source.endswith(".zh-cn.md"):
        title, _, text = markdown.partition("\n")
        markdown = f"{title}\n\n{ENGLISH_ONLY}{text}"
    return links.for_site(markdown, source, files.src_uris)


def on_page_content(html: str, page: Page, config: MkDocsConfig, **_: object) -> str:
    """Marks the rules in their table, for the filters."""
    is_table = page.file.src_uri == pages.in_language(pages.RULES, language_of(config))
    return filters.marked(html, registry().rules) if is_table else html


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Fills in the address of the page in the other language."""
    address = page.file.dest_uri
    if language_of(config) == "zh-cn":
        link = posixpath.relpath(address, posixpath.dirname(f"{CHINESE_FOLDER}/{address}"))
    else:
        link = posixpath.relpath(f"{CHINESE_FOLDER}/{address}", posixpath.dirname(address) or ".")
    # The theme would look for a sitemap behind each alternate.
    output = re.sub(r'<link rel="alternate"[^>]*>', "", output)
    return output.replace(f'"{OTHER_LANGUAGE}"', f'"{link}"')


def rule_of(page: Page) -> RuleFolder | None:
    """The rule that a page is about."""
    address = page.file.dest_uri
    found = (each for each in registry().rules if pages.rule_address(each.metadata.code) == address)
    return next(found, None)
