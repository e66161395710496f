import { realpathSync } from "node:fs";
import * as path from "node:path";

function contains(folder: string, file: string, system: path.PlatformPath): boolean {
    const relative = system.relative(folder, file);
    return relative === "" || (!relative.startsWith(".." + system.sep) && relative !== ".." && !system.isAbsolute(relative));
}

function withoutLinks(file: string, system: path.PlatformPath): string {
    try {
        return realpathSync(file);
    } catch {
        return system.resolve(file);
    }
}

/**
 * Whether the workspace has a say in what `file` is: it, its folder, or what it links to lies in one of `folders`.
 * The link and its goal both count, as a committed `.venv/bin/python` is a link to a harmless interpreter whose
 * virtual environment is not harmless.
 */
export function isInside(file: string, folders: readonly string[], system: path.PlatformPath = path): boolean {
    const places = [system.resolve(file), withoutLinks(file, system), withoutLinks(system.dirname(file), system)];
    return folders.some((folder) =>
        [system.resolve(folder), withoutLinks(folder, system)].some((root) => places.some((place) => contains(root, place, system))),
    );
}

/** The absolute folders of a PATH variable. Relative ones depend on the working directory and are left out. */
export function searchPath(variable: string | undefined, system: path.PlatformPath = path): string[] {
    return (variable ?? "").split(system.delimiter).filter((folder) => system.isAbsolute(folder));
}
