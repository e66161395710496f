"""``ranksafe check --add-ignore``: a suppression comment at every finding."""

from __future__ import annotations

from collections.abc import Sequence

from ranksafe.checker.suppression import suppress
from ranksafe.cli.checker import SYNTAX_ERROR
from ranksafe.cli.reading import NOT_WRITTEN, UnreadableSource, not_written, read_source
from ranksafe.cli.results import FileResult
from ranksafe.cli.terminal import fail, note
from ranksafe.localization import Language, Translated
from ranksafe.source.text import SourceText

_ADDED = Translated("Suppressions added: {count}.", "已添加 {count} 条屏蔽注释。")


def add_ignores(results: Sequence[FileResult], language: Language) -> int:
    """One comment per finding; an edit at a time, since two findings may share a line and then one comment.

    Returns the exit status: 2 where a file cannot be written.
    """
    count = 0
    for result in results:
        findings = [item.finding for item in result.reported if item.finding.code != SYNTAX_ERROR]
        if not findings:
            continue
        try:
            source = read_source(result.path)
            if source.cells is not None:
                note(f"{result.path}: {NOT_WRITTEN.in_language(language)}")
                continue
            text = source.text
            for finding in sorted(findings, key=lambda finding: finding.range, reverse=True):
                text = SourceText(text).edited([suppress(text, finding)])
                count += 1
            source.write(text)
        except UnreadableSource as error:
            return fail(f"{result.path}: {error.message.in_language(language)}", 2)
        except (OSError, UnicodeEncodeError) as error:
            return fail(not_written(result.path, error).in_language(language), 2)
    print(_ADDED.filled(count=count).in_language(language))
    return 0
