import * as path from "node:path";

import { findInterpreter, type Interpreter } from "./interpreter";
import type { ImportStrategy } from "./settings";

/** How the server's process is started. Two equal plans start the same server. */
export interface LaunchPlan {
    readonly interpreter: Interpreter;
    readonly arguments: readonly string[];
    readonly workingDirectory: string;
    readonly strategy: ImportStrategy;
    readonly trusted: boolean;
}

export interface LaunchChoices {
    readonly extensionFolder: string;
    readonly trusted: boolean;
    /** Folders no interpreter may come from while the workspace is not trusted. */
    readonly workspaceFolders: readonly string[];
    readonly strategy: ImportStrategy;
    /** `ranksafe.serverInterpreter`. */
    readonly serverInterpreter: string | undefined;
    /** The interpreter of the user's project: by setting or by the Python extension. */
    readonly projectInterpreter: string | undefined;
    readonly searchPath: string | undefined;
}

function defined(values: readonly (string | undefined)[]): string[] {
    return values.filter((value): value is string => value !== undefined);
}

/**
 * Chooses the interpreter and the command line of the server. Rejects with NoInterpreter.
 *
 * In an untrusted workspace the server runs on an interpreter outside of it and isolated, and is told that it is not
 * trusted, so that it loads the built-in rules only: a committed virtual environment, plug-in or configuration file
 * starts nothing.
 */
export async function planLaunch(choices: LaunchChoices): Promise<LaunchPlan> {
    const fromEnvironment = choices.trusted && choices.strategy === "fromEnvironment";
    const project = choices.trusted ? choices.projectInterpreter : undefined;
    const preferred = fromEnvironment ? [project, choices.serverInterpreter] : [choices.serverInterpreter, project];
    const interpreter = await findInterpreter({
        preferred: defined(preferred),
        forbidden: choices.trusted ? [] : choices.workspaceFolders,
        searchPath: choices.searchPath,
    });
    const bootstrap = path.join(choices.extensionFolder, "client", "bootstrap.py");
    return {
        interpreter,
        arguments: fromEnvironment ? [bootstrap, "--from-environment"] : ["-I", bootstrap],
        // Not the workspace: nothing there may be found by accident (Windows searches the working directory first).
        workingDirectory: choices.extensionFolder,
        strategy: fromEnvironment ? "fromEnvironment" : "useBundled",
        trusted: choices.trusted,
    };
}
