import * as vscode from "vscode";
import { NotificationType } from "vscode-languageclient/node";

/** Tells the server whether it may start runs. It refuses them until told so. */
export const TrustNotification = new NotificationType<{ trusted: boolean }>("ranksafe/trust");

/** The folders whose content is in nobody's hands but their author's until the user trusts the workspace. */
export function workspaceFolders(): string[] {
    return (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
}

/** Names of folders for `isInside` in an untrusted workspace: its folders, and the folder of a file opened alone. */
export function untrustedFolders(): string[] {
    const open = vscode.workspace.textDocuments
        .filter((document) => document.uri.scheme === "file" && !vscode.workspace.getWorkspaceFolder(document.uri))
        .map((document) => vscode.Uri.joinPath(document.uri, "..").fsPath);
    return [...workspaceFolders(), ...open];
}
