import { existsSync } from "node:fs";
import * as path from "node:path";

import * as vscode from "vscode";

import { t } from "./localize";

/** The type of debug session that attaches to debugpy; the extension Python Debugger has it. */
const TYPE = "debugpy";
const EXTENSION = "ms-python.debugpy";

/** What the server answers when a rank waits for a debugger. */
interface Waiting {
    readonly runId?: unknown;
    readonly attach?: Readonly<Record<string, unknown>>;
}

interface Manifest {
    readonly contributes?: { readonly debuggers?: readonly { readonly type?: unknown }[] };
}

/** Python Debugger, or what another editor has in its place. */
function debuggerExtension(): vscode.Extension<unknown> | undefined {
    return vscode.extensions.all.find(({ packageJSON }) => (packageJSON as Manifest).contributes?.debuggers?.some(({ type }) => type === TYPE));
}

/** Whether ranks can be debugged in this editor. */
export function canDebug(): boolean {
    return debuggerExtension() !== undefined;
}

/** Whether ranks can be debugged; the user is told what that needs. */
export async function requireDebugger(): Promise<boolean> {
    if (canDebug()) {
        return true;
    }
    const show = t("Show Extension");
    const answer = await vscode.window.showInformationMessage(t("To debug a rank, install the extension Python Debugger ({0}).", EXTENSION), show);
    if (answer === show) {
        await vscode.commands.executeCommand("workbench.extensions.search", `@id:${EXTENSION}`);
    }
    return false;
}

/** A folder with the debugpy that the debugger's extension brings along, for a Python that has none. */
export function bundledDebugpy(): string | undefined {
    const found = debuggerExtension();
    const libraries = found && path.join(found.extensionPath, "bundled", "libs");
    return libraries && existsSync(path.join(libraries, "debugpy")) ? libraries : undefined;
}

/** Asks which of the ranks is to be debugged; undefined when the user changed their mind. */
export async function askRank(ranks: number): Promise<number | undefined> {
    if (ranks === 1) {
        return 0;
    }
    const items = Array.from({ length: ranks }, (_, rank) => ({ label: `rank ${rank}`, rank }));
    return (await vscode.window.showQuickPick(items, { title: t("Rank to debug") }))?.rank;
}

/** Attaches the debugger to the rank that waits for it; a run to which it cannot be attached would wait for ever. */
export async function attach(script: vscode.Uri, rank: number, answer: unknown): Promise<void> {
    const { runId, attach: configuration } = (answer ?? {}) as Waiting;
    if (!configuration) {
        return;
    }
    const name = `${path.basename(script.fsPath)}: rank ${rank}`;
    // What the ranks print is in view already.
    const session = { type: TYPE, request: "attach", name, internalConsoleOptions: "neverOpen", ...configuration };
    const isAttached = await vscode.debug
        .startDebugging(vscode.workspace.getWorkspaceFolder(script), session)
        .then((started) => started, () => false);
    if (!isAttached) {
        await vscode.commands.executeCommand("ranksafe.cancelRun", runId);
        void vscode.window.showErrorMessage(t("The debugger could not be attached to rank {0}, so the run was cancelled.", rank));
    }
}

/** Keeps the context key by which menus know whether ranks can be debugged. */
export function followDebugger(): vscode.Disposable {
    const tell = (): void => void vscode.commands.executeCommand("setContext", "ranksafe.canDebug", canDebug());
    tell();
    return vscode.extensions.onDidChange(tell);
}
