import { realpathSync } from "node:fs";
import * as path from "node:path";

function contains(folder: string, file: string): boolean {
    const relative = path.relative(folder, file);
    return relative === "" || (!relative.startsWith(".." + path.sep) && relative !== ".." && !path.isAbsolute(relative));
}

function withoutLinks(file: string): string {
    try {
        return realpathSync(file);
    } catch {
        return path.resolve(file);
    }
}

/**
 * Whether the workspace has a say in what `file` is: it, its folder, or what it links to lies in one of `folders`.
 * The link and its goal both count, as a committed `.venv/bin/python` is a link to a harmless interpreter whose
 * virtual environment is not harmless.
 */
export function isInside(file: string, folders: readonly string[]): boolean {
    const places = [path.resolve(file), withoutLinks(file), withoutLinks(path.dirname(file))];
    return folders.some((folder) => [path.resolve(folder), withoutLinks(folder)].some((root) => places.some((place) => contains(root, place))));
}

/** The absolute folders of a PATH variable. Relative ones depend on the working directory and are left out. */
export function searchPath(variable: string | undefined): string[] {
    return (variable ?? "").split(path.delimiter).filter((folder) => path.isAbsolute(folder));
}
