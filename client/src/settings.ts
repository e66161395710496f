import * as vscode from "vscode";

import { languageOf, type Language } from "./localize";

export type ImportStrategy = "useBundled" | "fromEnvironment";

/** What the analysis reads; any scope may set it, for it starts nothing. */
export interface AnalysisSettings {
    readonly select: readonly string[];
    readonly ignore: readonly string[];
    readonly preview: boolean;
    readonly gpus: number | null;
    readonly launcher: string | null;
    readonly assume: readonly string[];
}

function configuration(): vscode.WorkspaceConfiguration {
    return vscode.workspace.getConfiguration("ranksafe");
}

/**
 * The user's own value of a setting that reaches a process. The manifest gives these settings machine scope, but editors
 * before 1.132 and 1.136.2 let a folder's nested settings through (microsoft/vscode#330310, #335112): workspace and folder
 * values are ignored here as well.
 */
function userValue<T>(key: string, fallback: T): T {
    const found = configuration().inspect<T>(key);
    return found?.globalValue ?? found?.defaultValue ?? fallback;
}

export function isEnabled(): boolean {
    return configuration().get<boolean>("enable", true);
}

/** The language for everything the user reads from ranksafe. */
export function language(): Language {
    const chosen = configuration().get<string>("language", "auto");
    return chosen === "en" || chosen === "zh-cn" ? chosen : languageOf(vscode.env.language);
}

/** Where the server comes from. An untrusted workspace has no say in it. */
export function importStrategy(): ImportStrategy {
    const chosen = vscode.workspace.isTrusted
        ? configuration().get<ImportStrategy>("importStrategy", "useBundled")
        : userValue<ImportStrategy>("importStrategy", "useBundled");
    return chosen === "fromEnvironment" ? chosen : "useBundled";
}

/** The Python that runs the server, if the user named one. */
export function serverInterpreter(): string | undefined {
    return userValue("serverInterpreter", "").trim() || undefined;
}

/** The Python that runs the user's scripts, if the user named one. */
export function projectInterpreter(): string | undefined {
    return userValue("interpreter", "").trim() || undefined;
}

/** Environment variables for runs: the user's own, text only. */
export function runEnvironment(): Readonly<Record<string, string>> {
    const entries = Object.entries(userValue<Record<string, unknown>>("runEnvironment", {}));
    return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"));
}

/** The user's own configuration file for ssh; undefined: ~/.ssh/config. */
export function sshConfigFile(): string | undefined {
    return userValue("sshConfigFile", "").trim() || undefined;
}

/** Whether saving starts a rehearsal: the user's own choice, for it starts processes. */
export function rehearseOnSave(): boolean {
    return userValue("rehearseOnSave", false);
}

function texts(key: string): string[] {
    const value: unknown = configuration().get(key);
    return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];
}

export function analysisSettings(): AnalysisSettings {
    const gpus: unknown = configuration().get("gpus");
    const launcher: unknown = configuration().get("launcher");
    return {
        select: texts("select"),
        ignore: texts("ignore"),
        preview: configuration().get<boolean>("preview", false),
        gpus: typeof gpus === "number" && Number.isInteger(gpus) && gpus > 0 ? gpus : null,
        launcher: typeof launcher === "string" && launcher ? launcher : null,
        assume: texts("assume"),
    };
}
