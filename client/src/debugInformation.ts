import * as vscode from "vscode";

import { analysisSettings, importStrategy, language } from "./settings";
import type { Server } from "./server";

/** What a bug report needs: versions and choices. No source text, no environment, no names of the user's files. */
export function debugInformation(context: vscode.ExtensionContext, server: Server): string {
    const manifest = context.extension.packageJSON as { version: string };
    const state = server.state;
    const information = {
        extension: manifest.version,
        editor: `${vscode.env.appName} ${vscode.version}`,
        platform: `${process.platform} ${process.arch}`,
        remote: vscode.env.remoteName ?? null,
        displayLanguage: vscode.env.language,
        language: language(),
        trusted: vscode.workspace.isTrusted,
        importStrategy: importStrategy(),
        server:
            state.kind === "running"
                ? { state: state.kind, version: state.serverVersion, python: state.plan.interpreter.version, isolated: state.plan.arguments.includes("-I") }
                : state,
        analysis: analysisSettings(),
    };
    return JSON.stringify(information, undefined, 2);
}
