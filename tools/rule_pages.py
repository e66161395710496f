"""Write ``docs/rules.md`` and ``docs/rules.zh-cn.md`` from the rules' folders; with ``--check`` only say whether they
are current."""

from __future__ import annotations

import sys
from pathlib import Path

from ranksafe.checker.registry import Registry
from ranksafe.checker.rule import Stability, Symptom
from ranksafe.checker.rule_folder import README_NAMES, RuleFolder
from ranksafe.localization import LANGUAGES, Language, Translated

ROOT = Path(__file__).resolve().parent.parent
PAGES: dict[Language, str] = {"en": "rules.md", "zh-cn": "rules.zh-cn.md"}

TITLE = Translated("Rules", "规则")
AREAS = {
    "1": Translated("launch", "启动"),
    "2": Translated("devices", "设备"),
    "3": Translated("data", "数据"),
    "4": Translated("collectives", "集合通信"),
    "5": Translated("model, gradients and optimizer", "模型、梯度与优化器"),
    "6": Translated("checkpoints and files", "检查点与文件"),
    "7": Translated("metrics and logging", "指标与日志"),
    "0": Translated("the file itself", "文件本身"),
}
"""By the hundreds digit of the code."""
INTRODUCTION = Translated(
    "Grouped by what people see most of all on several GPUs. The number says what a rule is about: {areas}."
    " `ranksafe explain RS201` shows a page in the terminal. *fix* says that `ranksafe fix` or the editor"
    " can repair it, *proof* that `ranksafe prove` can run it.\n\n"
    "<!-- Generated from the folders in `rules/` by `make docs`; do not edit. -->",
    "按多 GPU 时最常见的现象分组。编号表示规则的领域：{areas}。`ranksafe explain RS201` 可在终端中显示规则说明。"
    "*修复* 表示 `ranksafe fix` 或编辑器可以修复，*证明* 表示 `ranksafe prove` 可以运行其示例程序。\n\n"
    "<!-- 由 `make docs` 根据 `rules/` 中的文件夹生成，请勿手动修改。 -->",
)
HEADER = Translated(
    "| code | name | | level | fix | proof |", "| 编号 | 名称 | | 级别 | 修复 | 证明 |"
)
YES = Translated("yes", "有")
PREVIEW = Translated("preview", "预览")
SYMPTOMS: dict[Symptom | None, Translated] = {
    Symptom.HANGS: Translated("It hangs", "程序卡住"),
    Symptom.CRASHES: Translated("It crashes", "程序崩溃"),
    Symptom.WRONG: Translated("It is silently wrong", "结果悄悄出错"),
    Symptom.SLOW: Translated("It is slow, or needs too much memory", "速度慢，或占用过多内存"),
    None: Translated("About the file itself", "关于文件本身"),
}
"""What people see most of all; many a pitfall shows itself in two ways."""
LEVELS = {
    "error": Translated("error", "错误"),
    "warning": Translated("warning", "警告"),
    "information": Translated("information", "提示"),
}


def page(registry: Registry, language: Language) -> str:
    """The page's text."""
    areas = [f"RS{digit} {name.in_language(language)}" for digit, name in AREAS.items()]
    listed = "、".join(areas) if language == "zh-cn" else ", ".join(areas)
    introduction = INTRODUCTION.in_language(language).format(areas=listed)
    lines = [f"# {TITLE.in_language(language)}", "", introduction]
    for symptom, title in SYMPTOMS.items():
        lines += ["", f"## {title.in_language(language)}", ""]
        lines += [HEADER.in_language(language), "|---|---|---|---|---|---|"]
        shown = [folder for folder in registry.rules if folder.metadata.symptom is symptom]
        lines += [_row(folder, language) for folder in shown]
    return "\n".join(lines) + "\n"


def _row(folder: RuleFolder, language: Language) -> str:
    metadata = folder.metadata
    document = (folder.path / README_NAMES[language]).relative_to(ROOT).as_posix()
    summary = metadata.summary.in_language(language).replace("|", "\\|")
    if metadata.stability is Stability.PREVIEW:
        summary += f" ({PREVIEW.in_language(language)})"
    yes = YES.in_language(language)
    cells = [
        f'<a id="{metadata.code.lower()}"></a>{metadata.code}',
        f"[{metadata.name}](../{document})",
        summary,
        LEVELS[metadata.level.label].in_language(language),
        yes if (folder.path / "fix.py").is_file() else "",
        yes if folder.has_proof else "",
    ]
    return f"| {' | '.join(cells)} |"


def main(words: list[str]) -> int:
    registry = Registry.load(entry_points=False)
    for problem in registry.problems:
        print(problem, file=sys.stderr)
    stale = []
    for language in LANGUAGES:
        path = ROOT / "docs" / PAGES[language]
        text = page(registry, language)
        current = path.read_text(encoding="utf-8") if path.is_file() else None
        if text != current:
            stale.append(path)
            if "--check" not in words:
                path.write_text(text, encoding="utf-8")
    for path in stale:
        verb = "is not current (make docs)" if "--check" in words else "written"
        print(f"{path.relative_to(ROOT)} {verb}")
    return 1 if registry.problems or (stale and "--check" in words) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
