"""Hover: what a finding means, and what is known of the launch where it matters."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from lsprotocol import types

from ranksafe.checker.finding import Finding
from ranksafe.launch.context import LaunchContext, Launcher
from ranksafe.localization import Translated
from ranksafe.lsp.documents import Document
from ranksafe.lsp.fit_advice import Advice, advice_at
from ranksafe.lsp.messages import (
    LAUNCH_GPUS,
    LAUNCH_GPUS_ASSUMED,
    LAUNCH_HEADING,
    LAUNCH_LAUNCHER,
    LAUNCH_LAUNCHER_UNKNOWN,
    LAUNCH_NO_VERSIONS,
    LAUNCH_VERSION,
    RULE_LINK,
)
from ranksafe.lsp.session import Session
from ranksafe.source.position import Position, Range

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module

_LAUNCH_SENSITIVE: Final = (
    "accelerate.Accelerator",
    "accelerate.PartialState",
    "torch.nn.DataParallel",
    "torch.nn.parallel.DistributedDataParallel",
    "torch.distributed.init_process_group",
    "transformers.Trainer",
    "transformers.TrainingArguments",
)
_LAUNCH_SENSITIVE_METHODS: Final = (
    ("train", "transformers.Trainer"),
    ("prepare", "accelerate.Accelerator"),
    ("from_pretrained", "transformers.PreTrainedModel"),
)


async def hover(session: Session, params: types.HoverParams) -> types.Hover | None:
    """``textDocument/hover``: what is known at a place; None where there is nothing to say."""
    uri = params.text_document.uri
    document = await session.analyses.current(uri)
    if document is None:
        return None
    position = document.place_of(uri, params.position)
    findings = [one for one in document.findings if one.range.contains(position)]
    advice = advice_at(session, document, position)
    sections = [] if advice is None else [_about_memory(session, advice)]
    place = findings[0].range if findings else _relevant_call(document, position)
    if place is not None:
        sections += [
            *(_about(session, finding) for finding in findings),
            _launch(session, document),
        ]
    elif advice is not None:
        place = advice.place
    else:
        return None
    value = "\n\n---\n\n".join(sections)
    return types.Hover(
        contents=types.MarkupContent(types.MarkupKind.Markdown, value),
        range=document.locate(place).range,
    )


def _about(session: Session, finding: Finding) -> str:
    language = session.client.language
    rule = session.projects.registry.by_code(finding.code)
    # The message is not repeated: every editor shows the diagnostic's own beside this.
    lines = [f"**{finding.code}** `{finding.name}`"]
    if rule is not None:
        lines.append(_escaped(rule.metadata.summary.in_language(language)))
        link = RULE_LINK.filled(code=finding.code).in_language(language)
        lines.append(f"[{link}]({rule.url})")
    return "\n\n".join(lines)


def _about_memory(session: Session, advice: Advice) -> str:
    language = session.client.language
    first, *rest = (_escaped(each.in_language(language)) for each in advice.sentences)
    heading = advice.heading.in_language(language)
    sections = [f"**{heading}**", first, *rest]
    if advice.details:
        details = (_escaped(each.in_language(language)) for each in advice.details)
        sections.append("\n".join(f"- {each}" for each in details))
    return "\n\n".join([*sections, f"```sh\n{advice.command}\n```"])


def _launch(session: Session, document: Document) -> str:
    language = session.client.language
    context = session.projects.analyzer_for(document.path).launch
    facts = "\n".join(f"- {_escaped(fact.in_language(language))}" for fact in _facts(context))
    return f"**{LAUNCH_HEADING.in_language(language)}**\n\n{facts}"


def _facts(context: LaunchContext) -> list[Translated]:
    if context.gpus is None:
        facts = [LAUNCH_GPUS_ASSUMED.filled(count=context.assumed_gpus)]
    else:
        source = context.sources.get("gpus", "")
        facts = [LAUNCH_GPUS.filled(count=context.gpus, source=source)]
    if context.launcher is Launcher.UNKNOWN:
        facts.append(LAUNCH_LAUNCHER_UNKNOWN)
    else:
        source = context.sources.get("launcher", "")
        launcher = context.launcher.value
        facts.append(LAUNCH_LAUNCHER.filled(launcher=launcher, source=source))
    for name, version in sorted(context.versions.items()):
        source = context.sources.get(name, "")
        facts.append(LAUNCH_VERSION.filled(name=name, version=version, source=source))
    if not context.versions:
        facts.append(LAUNCH_NO_VERSIONS)
    return facts


def _relevant_call(document: Document, position: Position) -> Range | None:
    analysis = document.analysis
    module = analysis.module if analysis is not None else None
    if module is None or analysis is None or analysis.status == "stale":
        return None
    for call in _launch_sensitive_calls(module):
        callee = module.range_of(call.func)
        if callee.contains(position):
            return callee
    return None


def _launch_sensitive_calls(module: Module) -> list[ast.Call]:
    found = list(module.calls(*_LAUNCH_SENSITIVE))
    for method, owner in _LAUNCH_SENSITIVE_METHODS:
        found += module.method_calls(method, owner)
    return found


_CODE: Final = re.compile(r"((?<!`)`[^`\n]+`(?!`))")
"""Only what Markdown, too, takes for code: a stray backtick, of a version's name say, must not let a link through."""
_MARKUP: Final = re.compile(r"[\\`*_<>\[\]!]")


def _escaped(text: str) -> str:
    """Text as Markdown that shows it literally, except for code in backticks, which messages use on purpose."""
    parts = _CODE.split(text)
    for index in range(0, len(parts), 2):
        parts[index] = _MARKUP.sub(r"\\\g<0>", parts[index])
    return "".join(parts)
