import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient/node";

import { showPage } from "./pages";

/** Shows what the server asks to be shown: pages as a reader wants them, everything else as text. */
export const showDocument: NonNullable<NonNullable<Middleware["window"]>["showDocument"]> = async (params, token, next) => {
    const uri = vscode.Uri.parse(params.uri);
    if (uri.scheme === "file" && uri.path.endsWith(".html")) {
        await showPage(uri);
        return { success: true };
    }
    if (params.external || uri.scheme !== "file" || !uri.path.endsWith(".md")) {
        return next(params, token);
    }
    await vscode.commands.executeCommand("markdown.showPreview", uri);
    return { success: true };
};
