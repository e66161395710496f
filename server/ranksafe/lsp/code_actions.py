"""Code actions: what can be done about a finding. Edits are built when an action is chosen (``codeAction/resolve``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lsprotocol import types

from ranksafe.checker.finding import Applicability, Finding, FixOffer
from ranksafe.localization import Translated
from ranksafe.lsp import commands
from ranksafe.lsp.analysis import entry_of
from ranksafe.lsp.connection import Connection
from ranksafe.lsp.documents import Document, TextDocument
from ranksafe.lsp.file_edits import can_create_files
from ranksafe.lsp.fit_advice import fit_offers
from ranksafe.lsp.fit_commands import FIT
from ranksafe.lsp.launch_command import LAUNCH_COMMAND
from ranksafe.lsp.launch_json import launch_configuration_edit
from ranksafe.lsp.messages import (
    CODE_CHANGED,
    CONFIGURATION_KEPT,
    COPY_LAUNCH,
    FIT_SEARCH_ACTION,
    FIX_ALL,
    LAUNCH_JSON_KEPT,
    LIBCST_MISSING,
    OPEN_RULE,
    PROVE,
    RUN_BLOCKING,
    SUPPRESS,
    SUPPRESS_IN_FILE,
    SUPPRESS_IN_PROJECT,
)
from ranksafe.lsp.options import as_mapping
from ranksafe.lsp.project_ignore import configuration_file, ignore_edit
from ranksafe.lsp.session import Session
from ranksafe.source.position import Edit, Position, Range
from ranksafe.source.text import split_lines

FIX_ALL_KIND: Final = "source.fixAll.ranksafe"
RUN_OFFER: Final = "run-with-accelerate"
LAUNCH_JSON_OFFER: Final = "write-launch-json"
"""Keys of offers that are no edits of the file with the finding (RS101)."""


OPTIONS: Final = types.CodeActionOptions(
    code_action_kinds=[types.CodeActionKind.QuickFix, FIX_ALL_KIND], resolve_provider=True
)


async def offered(session: Session, params: types.CodeActionParams) -> list[types.CodeAction]:
    """``textDocument/codeAction``: what can be done in a range.

    Edits come with `resolved`, or at once for clients that cannot resolve.
    """
    uri = params.text_document.uri
    document = await session.analyses.current(uri)
    if document is None:
        return []
    actions = list(_actions(session, document, uri, params))
    if not _resolves(session.client):
        actions = [await resolved(session, action) for action in actions]
    return actions


def _actions(
    session: Session, document: Document, uri: str, params: types.CodeActionParams
) -> Iterator[types.CodeAction]:
    only = params.context.only
    if _wanted(types.CodeActionKind.QuickFix, only):
        first = document.place_of(uri, params.range.start).line
        last = document.place_of(uri, params.range.end).line
        # Fixes of all findings first: that is what is looked for.
        findings = document.findings_between(first, last)
        for finding in findings:
            yield from _fixes(session, document, uri, finding)
        for finding in findings:
            yield from _others(session, document, uri, finding)
        yield from _after_a_run(session, document, first, last)
        yield from _for_memory(session, document, uri, first, last)
        yield from _at_entry(session, document, uri, first, last)
    if _wanted(FIX_ALL_KIND, only) and _is_fixable(document):
        yield types.CodeAction(
            title=FIX_ALL.in_language(session.client.language),
            kind=FIX_ALL_KIND,
            data={"kind": "fixAll", "uri": uri},
        )


def _after_a_run(
    session: Session, document: Document, first: int, last: int
) -> Iterator[types.CodeAction]:
    """On a failure whose line is only near the cause: a run that finds the line."""
    here = [
        failure
        for failure in document.run_findings
        if failure.range.start.line <= last and first <= failure.range.end.line
    ]
    if not here or not session.workspace.trusted:
        return
    from ranksafe.runs.blocking_launches import comes_late

    late = (each for each in here if each.can_run_again and comes_late(each.kind))
    if failure := next(late, None):
        uri, options = failure.script.as_uri(), {"blockingLaunches": True}
        yield _command(session, RUN_BLOCKING, [], commands.RUN, uri, options)


def _for_memory(
    session: Session, document: Document, uri: str, first: int, last: int
) -> Iterator[types.CodeAction]:
    """Where a forecast drew that memory does not suffice, and on the arguments that would change it: what was seen to
    fit, or the search for it."""
    answer = session.forecasts.answer(document.path)
    if answer is None or answer.forecast is None or not session.workspace.trusted:
        return
    drawn = [
        session.publisher.of_failure(document, each)
        for each in document.run_findings
        if each.of_forecast and each.range.start.line <= last and first <= each.range.end.line
    ]
    for number, offer in enumerate(fit_offers(answer, document.text)):
        if drawn or offer.touches(first, last):
            action = _quick_fix(session, offer.title, drawn)
            action.edit = _workspace_edit(session.client, document, offer.edits)
            action.is_preferred = number == 0 or None
            yield action
    if drawn and not answer.is_searched and answer.holds_for(document.text):
        from ranksafe.runs.fit_search import MOST_RUNS

        title = FIT_SEARCH_ACTION.filled(runs=MOST_RUNS)
        yield _command(session, title, drawn, FIT, uri, {"search": True})


def _at_entry(
    session: Session, document: Document, uri: str, first: int, last: int
) -> Iterator[types.CodeAction]:
    """Over a script's entry: its launch, in other engines' words."""
    if not isinstance(document, TextDocument) or session.workspace.folder_of(document.path) is None:
        return
    entry = entry_of(document)
    if entry is not None and first <= entry.range.start.line <= last:
        title = COPY_LAUNCH.in_language(session.client.language)
        command = types.Command(title=title, command=LAUNCH_COMMAND, arguments=[uri])
        yield types.CodeAction(title=title, kind=types.CodeActionKind.Empty, command=command)


def _fixes(
    session: Session, document: Document, uri: str, finding: Finding
) -> Iterator[types.CodeAction]:
    diagnostics = [session.publisher.of_finding(document, finding)]
    for offer in finding.fixes:
        if offer.applicability is Applicability.DISPLAY:
            yield from _beyond_edits(session, document, uri, offer, diagnostics)
            continue
        data = {"kind": "fix", "uri": uri, "key": offer.key, **_description(finding)}
        action = _quick_fix(session, offer.title, diagnostics, data)
        action.is_preferred = offer.applicability is Applicability.SAFE or None
        yield action


def _beyond_edits(
    session: Session,
    document: Document,
    uri: str,
    offer: FixOffer,
    diagnostics: list[types.Diagnostic],
) -> Iterator[types.CodeAction]:
    """What a rule can only explain, where the editor can do it."""
    if not isinstance(document, TextDocument) or session.workspace.folder_of(document.path) is None:
        return
    if offer.key == RUN_OFFER and session.workspace.trusted:
        yield _command(session, offer.title, diagnostics, commands.RUN, uri)
    if offer.key == LAUNCH_JSON_OFFER and can_create_files(session.client.client_capabilities):
        yield _quick_fix(session, offer.title, diagnostics, {"kind": "launchJson", "uri": uri})


def _others(
    session: Session, document: Document, uri: str, finding: Finding
) -> Iterator[types.CodeAction]:
    code = finding.code
    diagnostics = [session.publisher.of_finding(document, finding)]
    data = {"kind": "suppress", "uri": uri, **_description(finding)}
    yield _quick_fix(session, SUPPRESS.filled(code=code), diagnostics, data)
    in_file = {**data, "kind": "suppressInFile"}
    yield _quick_fix(session, SUPPRESS_IN_FILE.filled(code=code), diagnostics, in_file)
    file = _project_file(session, document)
    if file is not None and can_create_files(session.client.client_capabilities):
        title = SUPPRESS_IN_PROJECT.filled(code=code, file=file.name)
        yield _quick_fix(session, title, diagnostics, {**data, "kind": "suppressInProject"})
    rule = session.projects.registry.by_code(code)
    if rule is None:
        return
    title = OPEN_RULE.filled(code=code, name=finding.name)
    yield _command(session, title, diagnostics, commands.OPEN_RULE, code)
    if session.workspace.trusted and rule.has_proof:
        yield _command(session, PROVE.filled(code=code), diagnostics, commands.PROVE, code)


def _project_file(session: Session, document: Document) -> Path | None:
    """The configuration file of a document's project; None outside of the open folders."""
    folder = session.workspace.folder_of(document.path)
    if folder is None:
        return None
    return configuration_file(session.projects.configuration_for(document.path).source, folder)


def _quick_fix(
    session: Session, title: Translated, diagnostics: list[types.Diagnostic], data: object = None
) -> types.CodeAction:
    return types.CodeAction(
        title=title.in_language(session.client.language),
        kind=types.CodeActionKind.QuickFix,
        diagnostics=diagnostics,
        data=data,
    )


def _command(
    session: Session,
    title: Translated,
    diagnostics: list[types.Diagnostic],
    name: str,
    *arguments: Any,
) -> types.CodeAction:
    action = _quick_fix(session, title, diagnostics)
    action.command = types.Command(title=action.title, command=name, arguments=list(arguments))
    return action


def _is_fixable(document: Document) -> bool:
    return any(
        offer.applicability is Applicability.SAFE
        for finding in document.findings
        for offer in finding.fixes
    )


def _resolves(client: Connection) -> bool:
    text_document = client.client_capabilities.text_document
    code_action = text_document.code_action if text_document else None
    resolve = code_action.resolve_support if code_action else None
    return bool(resolve and "edit" in resolve.properties)


async def resolved(session: Session, action: types.CodeAction) -> types.CodeAction:
    """``codeAction/resolve``: the action with its edit.

    Without one, and with a word to the user, when the code has changed.
    """
    data = as_mapping(action.data)
    uri = data.get("uri")
    document = await session.analyses.current(uri) if isinstance(uri, str) else None
    if document is None or action.command is not None or action.edit is not None:
        return action
    file: Path | None = None
    reason = CODE_CHANGED
    if data.get("kind") == "launchJson":
        reason = LAUNCH_JSON_KEPT
        folder = session.workspace.folder_of(document.path)
        if document.path is not None and folder is not None:
            action.edit = launch_configuration_edit(folder, document.path)
    elif data.get("kind") == "suppressInProject":
        file = _project_file(session, document)
        if file is not None:
            action.edit = ignore_edit(file, str(data.get("code")))
            reason = CONFIGURATION_KEPT.filled(file=file.name, code=data.get("code"))
    else:
        from ranksafe.fixes.build import LibcstMissing

        try:
            if edits := await _edits(session, document, data):
                action.edit = _workspace_edit(session.client, document, edits)
        except LibcstMissing:
            reason = LIBCST_MISSING
    if action.edit is None:
        session.client.warn(reason)
    return action


async def _edits(session: Session, document: Document, data: Mapping[str, Any]) -> Sequence[Edit]:
    if data.get("kind") == "fixAll":
        return await _all_edits(session, document)
    finding = _find(document, data)
    if finding is None:
        return ()
    if data.get("kind") == "suppress":
        from ranksafe.checker.suppression import suppress

        return (suppress(document.text, finding),)
    if data.get("kind") == "suppressInFile":
        from ranksafe.checker.suppression import suppress_in_file

        return (suppress_in_file(document.text, finding.code),)
    offer = next((one for one in finding.fixes if one.key == data.get("key")), None)
    return _fix_edits(session, document, finding, offer) if offer else ()


def _fix_edits(
    session: Session, document: Document, finding: Finding, offer: FixOffer
) -> Sequence[Edit]:
    from ranksafe.fixes.apply import module_of
    from ranksafe.fixes.build import build_edits

    analysis = document.analysis
    if analysis is None or analysis.status == "stale":
        return ()
    registry = session.projects.registry
    return build_edits(finding, offer, module_of(analysis), registry) or ()


async def _all_edits(session: Session, document: Document) -> Sequence[Edit]:
    from ranksafe.fixes.apply import fix_text

    analyzer = session.projects.analyzer_for(document.path)
    registry, before = session.projects.registry, document.text

    def fixed() -> list[Edit]:
        done = fix_text(before, lambda text: analyzer.open(document.path, text), registry)
        return line_edits(before, done.text)

    edits = await session.turns.result(fixed)
    return edits if document.text == before else ()


def _workspace_edit(
    client: Connection, document: Document, edits: Sequence[Edit]
) -> types.WorkspaceEdit:
    by_uri: dict[str, list[types.TextEdit]] = {}
    for edit in edits:
        place = document.locate(edit.range)
        by_uri.setdefault(place.uri, []).append(types.TextEdit(place.range, edit.new_text))
    workspace = client.client_capabilities.workspace
    capability = workspace.workspace_edit if workspace else None
    if not (capability and capability.document_changes):
        return types.WorkspaceEdit(changes=by_uri)
    return types.WorkspaceEdit(
        document_changes=[
            types.TextDocumentEdit(
                types.OptionalVersionedTextDocumentIdentifier(
                    uri=uri, version=document.version_of(uri)
                ),
                text_edits,
            )
            for uri, text_edits in by_uri.items()
        ]
    )


def line_edits(before: str, after: str) -> list[Edit]:
    """Edits of whole lines that turn one text into the other; small, so that the cursor and the folds stay."""
    from difflib import SequenceMatcher

    old, new = split_lines(before), split_lines(after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    edits = []
    for tag, first, last, new_first, new_last in matcher.get_opcodes():
        if tag == "equal":
            continue
        end = Position(last, 0) if last < len(old) else Position(len(old) - 1, len(old[-1]))
        edits.append(Edit(Range(Position(first, 0), end), "".join(new[new_first:new_last])))
    return edits


def _description(finding: Finding) -> dict[str, Any]:
    """Enough to find it again in the same text."""
    start = finding.range.start
    return {"code": finding.code, "line": start.line, "column": start.column}


def _find(document: Document, data: Mapping[str, Any]) -> Finding | None:
    wanted = {key: data.get(key) for key in ("code", "line", "column")}
    return next((finding for finding in document.findings if _description(finding) == wanted), None)


def _wanted(kind: str, only: Sequence[str] | None) -> bool:
    """Whether a kind is asked for; kinds are hierarchical (``source`` asks for ``source.fixAll.ranksafe``)."""
    if only is None:
        return True
    return any(asked == "" or kind == asked or kind.startswith(f"{asked}.") for asked in only)
