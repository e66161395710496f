import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient/node";

const STARTS = new Set(["ranksafe.run", "ranksafe.smokeRun", "ranksafe.rehearse", "ranksafe.debugRank"]);
/** Context key: the paths of the scripts whose entry is known, for `when` clauses. */
const SCRIPTS = "ranksafe.scripts";

const entries = new Map<string, vscode.Range>();

/** Whether a command starts a script of the user's. */
export function startsScript(command: string): boolean {
    return STARTS.has(command);
}

/** Where the lenses to run a script stand; undefined for a file that is no script. */
export async function entryOf(uri: vscode.Uri): Promise<vscode.Range | undefined> {
    await vscode.commands.executeCommand("vscode.executeCodeLensProvider", uri).then(undefined, () => undefined);
    return entries.get(uri.fsPath);
}

/** Notes where the server's lenses stand, and keeps them from the editor where the user wants none. */
export const provideCodeLenses: NonNullable<Middleware["provideCodeLenses"]> = async (document, token, next) => {
    const lenses = (await next(document, token)) ?? [];
    const entry = lenses.find((lens) => lens.command?.command.startsWith("ranksafe."))?.range;
    note(document.uri.fsPath, entry);
    return vscode.workspace.getConfiguration("ranksafe").get<boolean>("codeLens", true) ? lenses : [];
};

function note(file: string, entry: vscode.Range | undefined): void {
    const isNew = entries.has(file) !== (entry !== undefined);
    if (entry) {
        entries.set(file, entry);
    } else {
        entries.delete(file);
    }
    if (isNew) {
        void vscode.commands.executeCommand("setContext", SCRIPTS, [...entries.keys()]);
    }
}
