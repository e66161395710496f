import * as vscode from "vscode";

/**
 * Opens a copy of the example project, in a window of its own. A copy, because the extension's folder is replaced by
 * every update and may be read-only, and the examples are there to be edited.
 */
export async function openExample(context: vscode.ExtensionContext): Promise<void> {
    const source = vscode.Uri.joinPath(context.extensionUri, "examples");
    const copy = vscode.Uri.joinPath(context.globalStorageUri, "examples");
    await vscode.workspace.fs.createDirectory(context.globalStorageUri);
    await vscode.workspace.fs.copy(source, copy, { overwrite: true });
    await vscode.commands.executeCommand("vscode.openFolder", copy, { forceNewWindow: true });
}
