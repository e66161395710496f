import * as vscode from "vscode";

import { positionOf } from "./history";
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

const OPEN_PLACE = "ranksafe.openPlace";
const PLACE_LINK = /href="vscode:\/\/file([^"]+):(\d+)"/g;

/** Links to places, which open another window's VS Code in a browser, as links to this window. */
function withLinksToHere(page: string): string {
    return page.replace(PLACE_LINK, (_, path: string, row: string) => {
        const place = encodeURIComponent(JSON.stringify([decodeURIComponent(path), Number(row)]));
        return `href="command:${OPEN_PLACE}?${place}"`;
    });
}

/** The command behind the links of a page: shows a line of a file, and nothing else. */
export function registerOpenPlace(): vscode.Disposable {
    return vscode.commands.registerCommand(OPEN_PLACE, async (file: unknown, row: unknown) => {
        if (typeof file !== "string" || typeof row !== "number") {
            return;
        }
        const start = positionOf({ row, column: null });
        await vscode.window.showTextDocument(vscode.Uri.file(file), { selection: new vscode.Range(start, start) }).then(undefined, () => {
            void vscode.window.showInformationMessage(t("{0} is not on this machine.", file));
        });
    });
}

/** Shows an HTML page of ranksafe beside the editors: it loads nothing, and its links open places of files alone. */
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
    panel.webview.options = { enableScripts: OWN_POLICY.test(page), localResourceRoots: [], enableCommandUris: [OPEN_PLACE] };
    panel.webview.html = withLinksToHere(page);
    panel.reveal();
}
