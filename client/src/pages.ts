import * as vscode from "vscode";

import { t } from "./localize";

/** The pages of ranksafe allow themselves nothing but their own style and script. Without that, a page runs no script. */
const OWN_POLICY = /<meta [^>]*content="default-src 'none'; style-src [^"]*"[^>]*>/;
const TITLE = /<title>([^<]*)<\/title>/;
const ENTITIES: Readonly<Record<string, string>> = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&amp;": "&" };

const panels = new Map<string, vscode.WebviewPanel>();

function titleOf(page: string): string {
    const title = TITLE.exec(page)?.[1] ?? t("Report of a run");
    return title.replace(/&(?:lt|gt|quot|amp);/g, (entity) => ENTITIES[entity] ?? entity);
}

/** Shows an HTML page of ranksafe beside the editors: it loads nothing, and nothing it shows reaches the extension. */
export async function showPage(uri: vscode.Uri): Promise<void> {
    const page = new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
    const key = uri.toString();
    let panel = panels.get(key);
    if (!panel) {
        const options = { enableFindWidget: true, localResourceRoots: [] };
        panel = vscode.window.createWebviewPanel("ranksafe.report", titleOf(page), vscode.ViewColumn.Active, options);
        panel.onDidDispose(() => panels.delete(key));
        panels.set(key, panel);
    }
    panel.webview.options = { enableScripts: OWN_POLICY.test(page), localResourceRoots: [] };
    panel.webview.html = page;
    panel.reveal();
}
