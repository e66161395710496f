"""The page that leads from a message to what it means: made of the signatures that explain runs, and of what rules
and their proofs declare."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

import ranksafe.runs.explain.signatures as known
from pymdownx.slugs import slugify
from ranksafe.checker.registry import Registry
from ranksafe.checker.rule import Symptom
from ranksafe.checker.rule_folder import RuleFolder
from ranksafe.localization import Language, Translated, both
from ranksafe.runs.explain.signatures import Signature
from ranksafe.runs.proofs.header import ExpectedException, read_header
from rule_pages import PAGES, SYMPTOMS

from website.filters import errors_form
from website.pages import rule_address
from website.readable import VARIES, fits, wordings

slug = slugify(case="lower")
"""Anchors as mkdocs.yml has them made."""
TITLE = Translated("I see this error", "按报错查找")
INTRODUCTION = Translated(
    f"The messages that ranksafe knows from runs on several GPUs, and what each means. {VARIES} stands for what varies."
    " This page compares words only. `ranksafe diagnose train.log` reads the whole log: which rank failed first, at"
    " which line, and what a message alone does not tell. Errors that one GPU shows just as well are not listed here;"
    " `diagnose` knows many of them.",
    f"ranksafe 认识的多 GPU 运行中的报错，以及各自的含义。{VARIES} 表示会变化的部分。本页只比较文字；"
    "`ranksafe diagnose train.log` 会读取整个日志：哪个 rank 最先失败、在哪一行，以及仅凭报错看不出的信息。"
    "单 GPU 上同样会出现的错误不在此列，`diagnose` 认识其中许多。",
)
NO_MESSAGE = Translated("No message at all", "没有任何报错")
RULES_OF = Translated(
    "{symptom}: [the rules]({page}#{anchor})", "{symptom}：[相关规则]({page}#{anchor})"
)
HANGS_GUIDE = Translated(
    "; [who waits for whom](guide/hangs.md), while the job stands",
    "；[谁在等谁](guide/hangs.zh-cn.md)（任务仍卡住时）",
)
AREAS: tuple[tuple[Translated, tuple[str, ...]], ...] = (
    (
        Translated(
            "Collectives: mismatches, timeouts, lost ranks", "集合通信：不一致、超时、rank 失联"
        ),
        ("collectives",),
    ),
    (Translated("Starting the processes", "启动进程"), ("launch",)),
    (Translated("The network between ranks", "rank 之间的网络"), ("network",)),
    (
        Translated(
            "DataParallel, DistributedDataParallel, FSDP",
            "DataParallel、DistributedDataParallel、FSDP",
        ),
        ("data_parallel", "model", "wrappers"),
    ),
    (Translated("Devices and CUDA", "设备与 CUDA"), ("devices", "cuda_runtime")),
    (Translated("Memory and the machine", "内存与机器"), ("gpu_memory", "machine")),
    (
        Translated("Training loops and their settings", "训练循环及其设置"),
        ("trainers", "training_step", "configuration"),
    ),
    (
        Translated("Data and its workers", "数据与 DataLoader worker"),
        ("workers", "loading_data"),
    ),
    (Translated("What is installed", "安装的软件"), ("installation",)),
    (Translated("Slurm, ssh, Ray", "Slurm、ssh、Ray"), ("schedulers", "remote", "ray_actors")),
    (Translated("Engines that serve models", "推理引擎"), ("inference",)),
    (Translated("Ascend NPUs", "昇腾 NPU"), ("hccl",)),
)
"""The modules of signatures by what they are about."""
ORDINARY = frozenset({"credentials"})
"""Modules whose errors have nothing to do with several GPUs."""
OF_RULES = Translated("Other messages that rules lead to", "规则涉及的其他报错")
MORE = Translated("{count} more wordings", "另外 {count} 种写法")
PASSES = Translated("Where the traceback passes {places}:", "当调用栈经过 {places} 时：")
OWN_LINE = Translated(
    "Raised from your own code at {places}:", "由您自己的代码在 {places} 处引发时："
)
PRINTED = Translated("Where the log also has {places}:", "当日志中还有 {places} 时：")
SECONDARY = Translated(
    "Where another rank says more, this is only a consequence.",
    "如果其他 rank 有更具体的报错，这只是后果。",
)
_FEW_LETTERS = 200
FOUND_BY = Translated("Rules about code that fails like this:", "与这类失败有关的规则：")


@dataclass(slots=True)
class Entry:
    """Messages that read alike, and what they can mean."""

    anchor: str
    wordings: tuple[str, ...]
    signatures: list[Signature] = field(default_factory=list)
    rules: dict[str, RuleFolder] = field(default_factory=dict)
    """By code."""


def entries(registry: Registry) -> list[tuple[Translated, list[Entry]]]:
    """Everything on the page, by area."""
    areas = [(title, _of_modules(modules)) for title, modules in AREAS]
    everything = [entry for _, found in areas for entry in found]
    others: list[Entry] = []
    for folder in registry.rules:
        code = folder.metadata.code
        for entry in everything:
            if any(code in (each.code, *each.candidates) for each in entry.signatures):
                entry.rules[code] = folder
        for kind, text in declared(folder):
            related = _related([*everything, *others], kind, text)
            if not related:
                known_already = sum(code in each.rules for each in others)
                wording = f"{kind}: {VARIES}{text}" if kind else text
                related = [Entry(f"{code.lower()}-{known_already + 1}", (wording,))]
                others += related
            for entry in related:
                entry.rules[code] = folder
    return [*areas, (OF_RULES, others)]


def declared(folder: RuleFolder) -> Iterator[tuple[str, str]]:
    """The messages that a rule, or the program that proves it, says it leads to: type (or nothing) and text."""
    for pattern in folder.metadata.run_signatures:
        yield from (("", wording) for wording in wordings(pattern))
    if folder.has_proof:
        for expected in read_header(folder.failing_proof).expectations:
            if isinstance(expected, ExpectedException):
                yield expected.type, expected.text


def _related(found: Sequence[Entry], kind: str, text: str) -> list[Entry]:
    """Entries that the text has all words of; else the one that says more, unless there are several such."""
    whole = f"{kind}: {text}" if kind else text
    same = [entry for entry in found if any(fits(each, whole) for each in entry.wordings)]
    if same:
        return same
    part = _part(text)
    longer = [entry for entry in found if any(map(part.search, entry.wordings))]
    return longer if len(longer) == 1 else []


def _part(text: str) -> re.Pattern[str]:
    """A part of a wording: where the text has a number, the wording has it, too, or leaves it open."""
    pieces = (
        rf"(?:{VARIES}|{piece}(?!\d))" if piece.isdigit() else re.escape(piece)
        for piece in re.split(r"(\d+)", text)
    )
    return re.compile("".join(pieces))


def _of_modules(names: Sequence[str]) -> list[Entry]:
    found: dict[tuple[str, ...], Entry] = {}
    kinds: Counter[str] = Counter()
    for signature in (each for name in names for each in known.signatures_about(name)):
        if signature.plain:
            continue
        texts = wordings(signature.pattern.pattern)
        if texts and texts not in found:
            kinds[signature.kind] += 1
            found[texts] = Entry(f"{signature.kind}-{kinds[signature.kind]}", texts)
        if texts:
            found[texts].signatures.append(signature)
    return list(found.values())


def page(registry: Registry, language: Language) -> str:
    """The page's Markdown."""
    rules = PAGES[language]
    lines = [f"# {TITLE.in_language(language)}", "", INTRODUCTION.in_language(language), ""]
    lines += [errors_form(language), "", f"## {NO_MESSAGE.in_language(language)}", ""]
    for symptom in (Symptom.HANGS, Symptom.WRONG, Symptom.SLOW):
        title = SYMPTOMS[symptom].in_language(language)
        line = RULES_OF.in_language(language).format(
            symptom=title, page=rules, anchor=slug(title, "-")
        )
        guide = HANGS_GUIDE.in_language(language) if symptom is Symptom.HANGS else ""
        lines.append(f"- {line}{guide}")
    for area, found in entries(registry):
        lines += ["", f"## {area.in_language(language)}", ""]
        lines += [_section(entry, language) + "\n" for entry in found]
    return "\n".join(lines)


def _section(entry: Entry, language: Language) -> str:
    first, *more = entry.wordings
    lines = [
        f'<section class="entry" data-filtered>\n<h3 id="{entry.anchor}">{_wording(first)}</h3>'
    ]
    others = "".join(f"<li>{_wording(each)}</li>" for each in more)
    if sum(map(len, more)) > _FEW_LETTERS:
        title = MORE.in_language(language).format(count=len(more))
        lines.append(f"<details><summary>{title}</summary><ul>{others}</ul></details>")
    elif more:
        lines.append(f"<ul>{others}</ul>")
    for signature in entry.signatures:
        said = f"{_condition(signature, language)} {_meaning(signature, language)}".strip()
        lines.append(f"<p>{said}</p>")
        if signature.secondary:
            lines.append(f"<p><em>{SECONDARY.in_language(language)}</em></p>")
    if entry.rules:
        lines.append(f"<p>{FOUND_BY.in_language(language)}</p>\n<ul>")
        lines += [_rule(folder, language) for _, folder in sorted(entry.rules.items())]
        lines.append("</ul>")
    return "\n".join([*lines, "</section>"])


def _rule(folder: RuleFolder, language: Language) -> str:
    metadata = folder.metadata
    link = f'<a href="{rule_address(metadata.code)}">{metadata.code} {metadata.name}</a>'
    return f"<li>{link}: {with_code(metadata.summary.in_language(language))}</li>"


def _condition(signature: Signature, language: Language) -> str:
    """What else must hold for a signature besides its words."""
    said = []
    needs = signature.needs
    for pattern, sentence in (
        (needs.frames, PASSES),
        (needs.own_line, OWN_LINE),
        (needs.printed, PRINTED),
    ):
        if pattern is not None:
            places = ", ".join(map(_code, wordings(pattern.pattern)))
            said.append(sentence.in_language(language).format(places=places))
    return " ".join(said)


def _meaning(signature: Signature, language: Language) -> str:
    """The explanation without what only a real message can fill in."""
    said = both(signature.explanation, signature.action).in_language(language).strip()
    text = re.sub(r"\[\[.*?\]\]", "", said)
    text = re.sub(r"(?<!\{)\{\w+\}", VARIES, text)
    return with_code(text.replace("{{", "{").replace("}}", "}"))


def with_code(text: str) -> str:
    """Plain text as HTML, with what stands in backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


def _wording(text: str) -> str:
    return f'<code class="wording">{escape(text, quote=False)}</code>'


def _code(text: str) -> str:
    return f"<code>{escape(text, quote=False)}</code>"
