import * as vscode from "vscode";

import { isOlder } from "./versions";
import { t } from "./localize";

/** The first VS Code without the known ways for a folder's settings past the trust filter (microsoft/vscode#330310, #335112). */
const SAFE_VERSION = "1.136.2";

/** Warns, once per editor version, where the editor itself does not keep settings of an untrusted folder out. */
export function warnOfTrustHole(context: vscode.ExtensionContext, log: vscode.LogOutputChannel): void {
    if (!isOlder(vscode.version, SAFE_VERSION)) {
        return;
    }
    log.warn(`this editor is based on VS Code ${vscode.version}; ${SAFE_VERSION} closed microsoft/vscode#335112`);
    const key = `trustHole:${vscode.version}`;
    if (context.globalState.get<boolean>(key)) {
        return;
    }
    void context.globalState.update(key, true);
    void vscode.window.showWarningMessage(
        t(
            "This editor is based on VS Code {0}. Before {1}, settings in a folder could pass Workspace Trust. ranksafe ignores them, other extensions may not: please update.",
            vscode.version,
            SAFE_VERSION,
        ),
    );
}
