import * as vscode from "vscode";

import { proposals } from "./configurationKeys";

const FILES = ["pyproject.toml", "ranksafe.toml"].map((name) => ({ scheme: "file", pattern: `**/${name}` }));

/**
 * Offers the keys and values of configuration files. Extensions for TOML take a JSON schema from other extensions at a
 * web address only (tamasfe/taplo#322), and one for each file; the schema that is used here came with this extension.
 */
export function completeConfigurationFiles(): vscode.Disposable {
    return vscode.languages.registerCompletionItemProvider(
        FILES,
        {
            provideCompletionItems(document, position) {
                const before = document.getText(new vscode.Range(new vscode.Position(0, 0), position));
                const typed = /[\w-]*$/.exec(before)?.[0].length ?? 0;
                return proposals(before, document.fileName.endsWith("pyproject.toml")).map(({ label, insert, description }) => {
                    const item = new vscode.CompletionItem(label, description === undefined ? vscode.CompletionItemKind.EnumMember : vscode.CompletionItemKind.Property);
                    item.insertText = insert;
                    item.range = new vscode.Range(position.translate(0, -typed), position);
                    item.documentation = new vscode.MarkdownString(description ?? "");
                    return item;
                });
            },
        },
        '"',
    );
}
