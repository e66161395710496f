import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import * as path from "node:path";

import { isInside, searchPath } from "./paths";

/** An interpreter that can run the server. */
export interface Interpreter {
    readonly path: string;
    readonly version: string;
}

/** Why no interpreter was taken: every candidate with what was wrong with it. */
export class NoInterpreter extends Error {
    constructor(readonly attempts: readonly string[]) {
        super(attempts.join("; ") || "no Python found");
    }
}

export interface InterpreterSearch {
    /** Interpreters to try first, best first. */
    readonly preferred: readonly string[];
    /** No interpreter in these folders is ever started. */
    readonly forbidden: readonly string[];
    /** The PATH variable of the editor. */
    readonly searchPath: string | undefined;
}

const OLDEST = [3, 10] as const;
const PROBE = "import sys; print('%d.%d.%d' % sys.version_info[:3])";
const PROBE_MILLISECONDS = 10_000;
const NAMES = ["python3", "python", ...Array.from({ length: 6 }, (_, minor) => `python3.${15 - minor}`)];

function isExecutable(file: string): boolean {
    try {
        accessSync(file, constants.X_OK);
        return true;
    } catch {
        return false;
    }
}

/** The interpreters to try on `platform` (as `process.platform`), best first. */
export function* candidates(search: InterpreterSearch, platform: string = process.platform): Generator<string> {
    yield* search.preferred;
    const [system, suffix, wellKnown] =
        platform === "win32" ? [path.win32, ".exe", []] : [path.posix, "", ["/usr/local/bin", "/usr/bin", "/opt/homebrew/bin"]];
    const folders = [...searchPath(search.searchPath, system), ...wellKnown];
    for (const name of NAMES) {
        for (const folder of folders) {
            yield system.join(folder, name + suffix);
        }
    }
}

function versionOf(interpreter: string): Promise<string> {
    return new Promise((resolve, reject) => {
        // -I: neither the environment nor the working directory has a say in what this imports.
        execFile(interpreter, ["-I", "-c", PROBE], { timeout: PROBE_MILLISECONDS, cwd: path.dirname(interpreter) }, (error, stdout) => {
            if (error) {
                reject(error);
            } else {
                resolve(stdout.trim());
            }
        });
    });
}

/** Whether `version` ("3.11.7") is one the server runs on. */
export function isSupported(version: string): boolean {
    const [major = 0, minor = 0] = version.split(".").map(Number);
    return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
}

/** The first interpreter, in order of preference, that is new enough. Rejects with NoInterpreter. */
export async function findInterpreter(search: InterpreterSearch): Promise<Interpreter> {
    const attempts: string[] = [];
    const tried = new Set<string>();
    for (const candidate of candidates(search)) {
        const named = search.preferred.includes(candidate);
        if (tried.has(candidate) || (!named && !isExecutable(candidate))) {
            continue;
        }
        tried.add(candidate);
        if (!path.isAbsolute(candidate)) {
            attempts.push(`${candidate}: not an absolute path`);
        } else if (isInside(candidate, search.forbidden)) {
            attempts.push(`${candidate}: inside a folder that is not trusted`);
        } else {
            try {
                const version = await versionOf(candidate);
                if (isSupported(version)) {
                    return { path: candidate, version };
                }
                attempts.push(`${candidate}: Python ${version}, older than ${OLDEST.join(".")}`);
            } catch (error) {
                attempts.push(`${candidate}: ${error instanceof Error ? error.message : String(error)}`);
            }
        }
    }
    throw new NoInterpreter(attempts);
}
