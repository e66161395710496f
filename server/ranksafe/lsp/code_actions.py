"""Code actions: what can be done about a finding. Edits are built when an action is chosen (``codeAction/resolve``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types

from ranksafe.checker.finding import Applicability, Finding, FixOffer
from ranksafe.lsp import commands
from ranksafe.lsp.documents import Document, TextDocument
from ranksafe.lsp.launch_command import LAUNCH_COMMAND
from ranksafe.lsp.launch_json import can_create_files, launch_configuration_edit
from ranksafe.lsp.messages import (
    CODE_CHANGED,
    COPY_LAUNCH,
    FIX_ALL,
    LAUNCH_JSON_KEPT,
    LIBCST_MISSING,
    OPEN_RULE,
    PROVE,
    RUN_BLOCKING,
    SUPPRESS,
)
from ranksafe.lsp.options import as_mapping
from ranksafe.source.position import Edit, Range

if TYPE_CHECKING:
    from ranksafe.lsp.server import RanksafeServer

FIX_ALL_KIND: Final = "source.fixAll.ranksafe"
RUN_OFFER: Final = "run-with-accelerate"
LAUNCH_JSON_OFFER: Final = "write-launch-json"
"""Keys of offers that are no edits of the file with the finding (RS101)."""


class Actions:
    """Builds and resolves code actions."""

    def __init__(self, server: RanksafeServer) -> None:
        self._server = server

    # -- offered

    def offered(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """What can be done in a range; edits come with `resolved`, or at once for clients that cannot resolve."""
        uri = params.text_document.uri
        document = self._server.documents.get(uri)
        if document is None:
            return []
        self._server.checks.ensure(document)
        actions = list(self._actions(document, uri, params))
        if not self._client_resolves():
            actions = [self.resolved(action) for action in actions]
        return actions

    def _actions(
        self, document: Document, uri: str, params: types.CodeActionParams
    ) -> Iterator[types.CodeAction]:
        only = params.context.only
        if _wanted(types.CodeActionKind.QuickFix, only):
            first = document.place_of(uri, params.range.start).line
            last = document.place_of(uri, params.range.end).line
            # Fixes of all findings first: that is what is looked for.
            findings = self._server.checks.findings_between(document, first, last)
            for finding in findings:
                yield from self._fixes(document, uri, finding)
            for finding in findings:
                yield from self._others(document, uri, finding)
            yield from self._after_a_run(document, first, last)
            yield from self._at_entry(document, uri, first, last)
        if _wanted(FIX_ALL_KIND, only) and self._is_fixable(document):
            yield types.CodeAction(
                title=FIX_ALL.in_language(self._server.language),
                kind=FIX_ALL_KIND,
                data={"kind": "fixAll", "uri": uri},
            )

    def _after_a_run(self, document: Document, first: int, last: int) -> Iterator[types.CodeAction]:
        """On a failure whose line is only near the cause: a run that finds the line."""
        here = [
            failure
            for failure in document.run_findings
            if failure.range.start.line <= last and first <= failure.range.end.line
        ]
        if not here or not self._server.trusted:
            return
        from ranksafe.runs.blocking_launches import comes_late

        late = (each for each in here if each.can_run_again and comes_late(each.kind))
        if failure := next(late, None):
            title = RUN_BLOCKING.in_language(self._server.language)
            arguments = [failure.script.as_uri(), {"blockingLaunches": True}]
            yield self._command(title, commands.RUN, arguments, [])

    def _at_entry(
        self, document: Document, uri: str, first: int, last: int
    ) -> Iterator[types.CodeAction]:
        """Over a script's entry: its launch, in other engines' words."""
        if not isinstance(document, TextDocument) or self._server.folder_of(document.path) is None:
            return
        entry = self._server.checks.entry_of(document)
        if entry is not None and first <= entry.range.start.line <= last:
            title = COPY_LAUNCH.in_language(self._server.language)
            command = types.Command(title=title, command=LAUNCH_COMMAND, arguments=[uri])
            yield types.CodeAction(title=title, kind=types.CodeActionKind.Empty, command=command)

    def _fixes(self, document: Document, uri: str, finding: Finding) -> Iterator[types.CodeAction]:
        for offer in finding.fixes:
            if offer.applicability is Applicability.DISPLAY:
                yield from self._beyond_edits(document, uri, finding, offer)
                continue
            yield types.CodeAction(
                title=offer.title.in_language(self._server.language),
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[self._server.publisher.of_finding(document, finding)],
                is_preferred=offer.applicability is Applicability.SAFE or None,
                data={"kind": "fix", "uri": uri, "key": offer.key, **_description(finding)},
            )

    def _beyond_edits(
        self, document: Document, uri: str, finding: Finding, offer: FixOffer
    ) -> Iterator[types.CodeAction]:
        """What a rule can only explain, where the editor can do it."""
        folder = self._server.folder_of(document.path)
        if not isinstance(document, TextDocument) or folder is None:
            return
        title = offer.title.in_language(self._server.language)
        diagnostics = [self._server.publisher.of_finding(document, finding)]
        if offer.key == RUN_OFFER and self._server.trusted:
            yield self._command(title, commands.RUN, [uri], diagnostics)
        if offer.key == LAUNCH_JSON_OFFER and can_create_files(self._server.client_capabilities):
            yield types.CodeAction(
                title=title,
                kind=types.CodeActionKind.QuickFix,
                diagnostics=diagnostics,
                data={"kind": "launchJson", "uri": uri},
            )

    def _others(self, document: Document, uri: str, finding: Finding) -> Iterator[types.CodeAction]:
        language = self._server.language
        rule = self._server.checks.rule(finding.code)
        diagnostics = [self._server.publisher.of_finding(document, finding)]
        title = SUPPRESS.filled(code=finding.code)
        yield types.CodeAction(
            title=title.in_language(language),
            kind=types.CodeActionKind.QuickFix,
            diagnostics=diagnostics,
            data={"kind": "suppress", "uri": uri, **_description(finding)},
        )
        if rule is None:
            return
        title = OPEN_RULE.filled(code=finding.code, name=finding.name)
        yield self._command(
            title.in_language(language), commands.OPEN_RULE, [finding.code], diagnostics
        )
        if self._server.trusted and rule.has_proof:
            title = PROVE.filled(code=finding.code)
            yield self._command(
                title.in_language(language), commands.PROVE, [finding.code], diagnostics
            )

    def _command(
        self,
        title: str,
        command: str,
        arguments: list[Any],
        diagnostics: list[types.Diagnostic],
    ) -> types.CodeAction:
        return types.CodeAction(
            title=title,
            kind=types.CodeActionKind.QuickFix,
            diagnostics=diagnostics,
            command=types.Command(title=title, command=command, arguments=arguments),
        )

    def _is_fixable(self, document: Document) -> bool:
        return any(
            offer.applicability is Applicability.SAFE
            for finding in document.findings
            for offer in finding.fixes
        )

    def _client_resolves(self) -> bool:
        text_document = self._server.client_capabilities.text_document
        code_action = text_document.code_action if text_document else None
        resolve = code_action.resolve_support if code_action else None
        return bool(resolve and "edit" in resolve.properties)

    # -- resolved

    def resolved(self, action: types.CodeAction) -> types.CodeAction:
        """The action with its edit; without one, and with a word to the user, when the code has changed."""
        data = as_mapping(action.data)
        uri = data.get("uri")
        document = self._server.documents.get(uri) if isinstance(uri, str) else None
        if document is None or action.command is not None:
            return action
        self._server.checks.ensure(document)
        if data.get("kind") == "launchJson":
            folder = self._server.folder_of(document.path)
            if document.path is not None and folder is not None:
                action.edit = launch_configuration_edit(folder, document.path)
        elif edits := self._edits(document, data):
            action.edit = self._workspace_edit(document, edits)
        if action.edit is None:
            reason = CODE_CHANGED if find_spec("libcst") else LIBCST_MISSING
            if data.get("kind") == "launchJson":
                reason = LAUNCH_JSON_KEPT
            self._server.warn(reason.in_language(self._server.language))
        return action

    def _edits(self, document: Document, data: Mapping[str, Any]) -> Sequence[Edit]:
        if data.get("kind") == "fixAll":
            return self._all_edits(document)
        finding = _find(document, data)
        if finding is None:
            return ()
        if data.get("kind") == "suppress":
            from ranksafe.checker.suppression import suppress

            return (suppress(document.text, finding),)
        offer = next((one for one in finding.fixes if one.key == data.get("key")), None)
        return self._fix_edits(document, finding, offer) if offer else ()

    def _fix_edits(self, document: Document, finding: Finding, offer: FixOffer) -> Sequence[Edit]:
        from ranksafe.fixes.apply import module_of
        from ranksafe.fixes.build import edits_for

        analysis = document.analysis
        if analysis is None or analysis.status == "stale":
            return ()
        registry = self._server.projects.registry
        return edits_for(finding, offer, module_of(analysis), registry) or ()

    def _all_edits(self, document: Document) -> Sequence[Edit]:
        from ranksafe.fixes.apply import fix_text

        analyzer = self._server.projects.analyzer_for(document.path)
        before = document.text
        fixed = fix_text(
            before,
            lambda text: analyzer.open(document.path, text),
            self._server.projects.registry,
        )
        return line_edits(before, fixed.text)

    def _workspace_edit(self, document: Document, edits: Sequence[Edit]) -> types.WorkspaceEdit:
        by_uri: dict[str, list[types.TextEdit]] = {}
        for edit in edits:
            place = document.locate(edit.range)
            by_uri.setdefault(place.uri, []).append(types.TextEdit(place.range, edit.new_text))
        workspace = self._server.client_capabilities.workspace
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

    from ranksafe.source.position import Position
    from ranksafe.source.text import split_lines

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


def register(server: RanksafeServer) -> None:
    """Answer ``textDocument/codeAction`` and ``codeAction/resolve``."""
    actions = Actions(server)
    options = types.CodeActionOptions(
        code_action_kinds=[types.CodeActionKind.QuickFix, FIX_ALL_KIND], resolve_provider=True
    )

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)
    def code_actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        return actions.offered(params)

    @server.feature(types.CODE_ACTION_RESOLVE)
    def resolve(params: types.CodeAction) -> types.CodeAction:
        return actions.resolved(params)
