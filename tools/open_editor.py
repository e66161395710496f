"""``make vscode`` and ``make nvim``: the example project in an editor with ranksafe."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys

from environments import ROOT, SetUpError, cache_folder, project_environment, say

EXAMPLE = ROOT / "examples" / "finetune.py"
EDITORS = {"code": "VS Code", "cursor": "Cursor", "codium": "VSCodium"}
"""Command to name."""
CHOICE = "EDITOR_COMMAND"
"""The variable that answers what would be asked: a command, or `BROWSER`."""
BROWSER = "browser"
CODE_SERVER_MB = (260, 800)
"""What code-server 4.139.1 and its Node were to download, and on disk."""


def open_vscode() -> int:
    """In a desktop VS Code, Cursor or VSCodium, else in the workbench in the browser, on loopback."""
    npm = shutil.which("npm")
    if npm is None:
        raise SetUpError("Node 20 or newer with npm is needed (nodejs.org)")
    desktop = choose_editor()
    for command in (
        [npm, "ci", "--no-audit", "--no-fund"],
        [npm, "run", "package", "--", "--local"],
    ):
        subprocess.run(command, cwd=ROOT, check=True)
    if desktop is None:
        node = shutil.which("node") or "node"
        return subprocess.run([node, "tools/workbench.mjs"], cwd=ROOT, check=False).returncode
    packages = sorted(
        (ROOT / "dist").glob("ranksafe-*.vsix"), key=lambda path: path.stat().st_mtime
    )
    if not packages:
        raise SetUpError("npm run package made no .vsix")
    say(f"installing {packages[-1].name} with {desktop}")
    install = [desktop, "--install-extension", str(packages[-1]), "--force"]
    subprocess.run(install, check=True)
    return subprocess.run([desktop, str(ROOT), str(EXAMPLE)], check=False).returncode


def choose_editor() -> str | None:
    """The command of a desktop editor; None for the workbench in the browser. Raises SetUpError."""
    named = os.environ.get(CHOICE)
    if named == BROWSER:
        return None
    if named:
        command = shutil.which(named)
        if command is None:
            raise SetUpError(f"{CHOICE}={named}: there is no such command")
        return command
    found = {command: name for command in EDITORS if (name := shutil.which(command))}
    if len(found) > 1:
        return _one_of(found)
    for command, path in found.items():
        say(f"found {EDITORS[command]} ({path})")
        return path
    _consent_to_browser()
    return None


def _one_of(found: dict[str, str]) -> str:
    names = [f"{EDITORS[command]} ({path})" for command, path in found.items()]
    if not sys.stdin.isatty():
        raise SetUpError(
            f"found {', '.join(names)}; say which: {CHOICE}={next(iter(found))} make vscode"
        )
    for number, name in enumerate(names, start=1):
        say(f"{number}: {name}")
    answer = _asked(f"which one? 1 to {len(names)}: ")
    if answer not in map(str, range(1, len(names) + 1)):
        raise SetUpError(f"nothing installed: {answer or 'no answer'} is none of them")
    return list(found.values())[int(answer) - 1]


def _consent_to_browser() -> None:
    """Where there is no desktop editor, code-server is served only if the user wants that. Raises SetUpError."""
    none = (
        f"no {', '.join(EDITORS.values())} was found on PATH. One that is installed puts its command there with "
        "\"Shell Command: Install 'code' command in PATH\" (View, Command Palette)"
    )
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise SetUpError(none)
    download, disk = CODE_SERVER_MB
    offer = (
        f"the same workbench can be served to the browser (code-server, {download} MB to download once and "
        f"{disk} MB in {cache_folder()}; nothing else is installed)"
    )
    if not sys.stdin.isatty():
        raise SetUpError(f"{none}. Or {offer}: {CHOICE}={BROWSER} make vscode")
    say(none)
    say(offer)
    if _asked("serve it? y or n: ").lower() not in ("y", "yes"):
        raise SetUpError("nothing installed")


def _asked(question: str) -> str:
    print(f"==> {question}", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()


def open_neovim() -> int:
    """With the configuration of client/neovim alone, beside none of the user's own."""
    python = project_environment(development=True)
    nvim = shutil.which("nvim") or shutil.which("nvim", path=str(python.parent))
    if nvim is None:
        raise SetUpError("Neovim 0.10 or newer is needed: https://neovim.io")
    environment = {**os.environ, "PATH": os.pathsep.join([str(python.parent), os.environ["PATH"]])}
    command = [nvim, "--clean", "--cmd", f"set runtimepath+={ROOT / 'client' / 'neovim'}"]
    command += ["-c", "lua vim.lsp.enable('ranksafe')", "-c", f"edit {EXAMPLE}"]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def main(words: list[str]) -> int:
    editors = {"vscode": open_vscode, "nvim": open_neovim}
    if len(words) != 1 or words[0] not in editors:
        say(f"usage: open_editor.py {' | '.join(editors)}")
        return 2
    try:
        return editors[words[0]]()
    except (SetUpError, subprocess.CalledProcessError) as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
