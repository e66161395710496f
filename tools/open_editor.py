"""``make vscode`` and ``make nvim``: the example project in an editor with ranksafe."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from environments import ROOT, SetUpError, project_environment, say

EXAMPLE = ROOT / "examples" / "finetune.py"


def open_vscode() -> int:
    """In a desktop VS Code if there is one, else in the workbench in the browser, on loopback."""
    npm = shutil.which("npm")
    if npm is None:
        raise SetUpError("Node 20 or newer with npm is needed (nodejs.org)")
    for command in ([npm, "ci", "--no-audit", "--no-fund"], [npm, "run", "package"]):
        subprocess.run(command, cwd=ROOT, check=True)
    desktop = next(filter(None, map(shutil.which, ("code", "codium", "cursor"))), None)
    if desktop is None:
        say("no desktop VS Code found: serving the workbench in the browser")
        node = shutil.which("node") or "node"
        return subprocess.run([node, "tools/workbench.mjs"], cwd=ROOT, check=False).returncode
    packages = sorted(
        (ROOT / "dist").glob("ranksafe-*.vsix"), key=lambda path: path.stat().st_mtime
    )
    if not packages:
        raise SetUpError("npm run package made no .vsix")
    install = [desktop, "--install-extension", str(packages[-1]), "--force"]
    subprocess.run(install, check=True)
    return subprocess.run([desktop, str(ROOT), str(EXAMPLE)], check=False).returncode


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
