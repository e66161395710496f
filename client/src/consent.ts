import { realpathSync } from "node:fs";
import { hostname } from "node:os";

import * as vscode from "vscode";

import { t } from "./localize";

/** What the user is asked to agree to before the first run of a workspace on a target. */
export interface ConsentRequest {
    readonly script: vscode.Uri;
    readonly target: string;
    readonly interpreter: string | undefined;
    /** Names, never values: values may be secrets. */
    readonly environmentNames: readonly string[];
}

/** What a yes was said to: one workspace and one target. */
function consentKey(request: ConsentRequest): string {
    const folder = vscode.workspace.getWorkspaceFolder(request.script)?.uri ?? vscode.Uri.joinPath(request.script, "..");
    return `consent:${JSON.stringify([folder.toString(), request.target])}`;
}

/** The interpreter's path and, behind links, the program that it is. */
function pathsOf(interpreter: string): string {
    try {
        const real = realpathSync(interpreter);
        return real === interpreter ? real : `${interpreter} (${real})`;
    } catch {
        return interpreter;
    }
}

/** Simulated GPUs are computed by this machine. */
function isHere(target: string): boolean {
    return target === "local" || target.startsWith("simulated:");
}

function explanation(request: ConsentRequest): string {
    const folder = vscode.workspace.getWorkspaceFolder(request.script)?.uri.fsPath ?? "";
    const lines = [
        t("Machine: {0}", isHere(request.target) ? `${hostname()} (${request.target})` : request.target),
        t("Folder: {0}", folder),
        t("Python: {0}", request.interpreter ? pathsOf(request.interpreter) : t("found by ranksafe")),
        t("The script is started once per rank with accelerate launch or torchrun."),
    ];
    if (request.target.startsWith("simulated:")) {
        lines.push(t("A rehearsal on simulated GPUs: where the system allows it, what the script writes is thrown away and the network is out of its reach."));
    }
    if (request.environmentNames.length > 0) {
        lines.push(t("Environment variables set: {0}", request.environmentNames.join(", ")));
    }
    lines.push(t("You are asked once per workspace and target."));
    return lines.join("\n");
}

/** Whether a run may start. Asks the first time, and remembers a yes in the user's own state, never in the repository. */
export async function mayRun(state: vscode.Memento, request: ConsentRequest): Promise<boolean> {
    const key = consentKey(request);
    if (state.get<boolean>(key)) {
        return true;
    }
    const run = t("Run");
    const name = vscode.workspace.asRelativePath(request.script);
    const answer = await vscode.window.showInformationMessage(t("Run {0} with ranksafe?", name), { modal: true, detail: explanation(request) }, run);
    if (answer !== run) {
        return false;
    }
    await state.update(key, true);
    return true;
}
