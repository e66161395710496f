// Downloads the pinned wheels and unpacks them into bundled/libs.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

import { PLATFORMS, UNIVERSAL } from "./platforms.mjs";

const requirements = join(dirname(fileURLToPath(import.meta.url)), "requirements.txt");
/** The SHA-256 of every wheel of these versions, by line of the requirements. */
const hashes = JSON.parse(readFileSync(join(dirname(fileURLToPath(import.meta.url)), "hashes.json"), "utf8"));

/** Extension modules carry the interpreter's version in their names, so the wheels of all of these share one folder. */
const PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14", "3.15"];
/** pyyaml is there for libcst alone. The universal package has neither: only fixes of other packages' rules use libcst. */
const COMPILED = new Set(["libcst", "pyyaml"]);
/** Where the pinned version has no wheels: libcst has none for Intel Macs since 1.9. */
const PINNED_OTHERWISE = { "darwin-x64": { libcst: "1.8.6" } };
/** Without it libcst cannot be imported; pyyaml works without its extension module. */
const NEEDED = new Set(["libcst"]);
/** libcst has had wheels for the other versions for long; a new Python may come before them. */
const OLDEST_NEWCOMER = "3.15";

/** The first Python that has pip: named, of the checkout's virtual environment, or on PATH. */
export function findPythonWithPip(root) {
    const candidates = [process.env.RANKSAFE_BUILD_PYTHON, join(root, ".venv/bin/python"), "python3", "python"];
    for (const candidate of candidates.filter(Boolean)) {
        try {
            execFileSync(candidate, ["-m", "pip", "--version"], { stdio: "ignore" });
            return candidate;
        } catch {
            // Not there, or without pip: the next one may do.
        }
    }
    throw new Error("No Python with pip found. Install one, or set RANKSAFE_BUILD_PYTHON to its path.");
}

/** What is bundled for `target`: name and version of each library. */
export function pinned(target) {
    const lines = readFileSync(requirements, "utf8").split("\n").map((line) => line.trim());
    const all = lines.filter((line) => line && !line.startsWith("#")).map((line) => line.split("=="));
    return all
        .filter(([name]) => target !== UNIVERSAL || !COMPILED.has(name))
        .map(([name, version]) => ({ name, version: PINNED_OTHERWISE[target]?.[name] ?? version }));
}

function download(python, target, version, packages, folder) {
    const tags = [...PLATFORMS[target], "any"].flatMap((tag) => ["--platform", tag]);
    const options = ["--no-deps", "--only-binary=:all:", "--quiet", "--disable-pip-version-check", "--python-version", version, ...tags];
    // Renamed when complete, so that an interrupted download is not taken for a finished one.
    const unfinished = `${folder}.new`;
    rmSync(unfinished, { recursive: true, force: true });
    mkdirSync(unfinished, { recursive: true });
    const wanted = join(unfinished, "requirements.txt");
    // pip takes no file with another hash, whatever the index or a mirror gives it.
    writeFileSync(wanted, packages.map((line) => `${line} ${hashes[line].map((hash) => `--hash=sha256:${hash}`).join(" ")}\n`).join(""));
    execFileSync(python, ["-m", "pip", "download", ...options, "--require-hashes", "--dest", unfinished, "-r", wanted], { stdio: ["ignore", "ignore", "pipe"] });
    rmSync(wanted);
    renameSync(unfinished, folder);
}

/** Fetches what is not there yet; a folder of wheels is kept per target and list of versions. */
function fetchWheels(python, target, cache) {
    const packages = pinned(target).map(({ name, version }) => ({ name, line: `${name}==${version}` }));
    const wanted = JSON.stringify([packages, PLATFORMS[target]]);
    const folder = join(cache, `${target}-${createHash("sha256").update(wanted).digest("hex").slice(0, 12)}`);
    if (!existsSync(join(folder, "pure"))) {
        const pure = packages.filter(({ name }) => !COMPILED.has(name)).map(({ line }) => line);
        download(python, target, PYTHONS[0], pure, join(folder, "pure"));
    }
    for (const version of PYTHONS) {
        for (const { line, name } of packages.filter(({ name }) => COMPILED.has(name))) {
            const place = join(folder, `${name}-${version}`);
            if (existsSync(place)) {
                continue;
            }
            try {
                download(python, target, version, [line], place);
            } catch (error) {
                if (NEEDED.has(name) && version !== OLDEST_NEWCOMER) {
                    throw error;
                }
                console.warn(`no wheel of ${line} for CPython ${version} on ${target}; left out`);
            }
        }
    }
    return readdirSync(folder).filter((name) => !name.endsWith(".new")).flatMap((name) => readdirSync(join(folder, name)).map((file) => join(folder, name, file)));
}

const UNPACK = `
import re, sys, zipfile
from pathlib import Path
goal = Path(sys.argv[1])
for wheel in sys.argv[2:]:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if ".dist-info/" in name and not re.search(r"/(METADATA$|licen[cs]e|notice|copying)", name, re.IGNORECASE):
                continue
            if name.endswith((".pyi", ".pxd", "/")) or "/tests/" in name:
                continue
            file = goal / name
            content = archive.read(name)
            if file.exists() and file.read_bytes() != content and ".dist-info/" not in name:
                sys.exit(f"{name} differs between the wheels of one package; they cannot share a folder")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
`;

/** Unpacks every library of the server for `target` into `goal`. */
export function bundleLibraries({ root, target, cache, goal }) {
    if (!(target in PLATFORMS)) {
        throw new Error(`Unknown target ${target}; known: ${Object.keys(PLATFORMS).join(", ")}`);
    }
    const python = findPythonWithPip(root);
    mkdirSync(cache, { recursive: true });
    const wheels = fetchWheels(python, target, cache);
    rmSync(goal, { recursive: true, force: true });
    execFileSync(python, ["-c", UNPACK, goal, ...wheels], { stdio: "inherit" });
    const size = readdirSync(goal, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .reduce((total, entry) => total + statSync(join(entry.parentPath ?? entry.path, entry.name)).size, 0);
    console.log(`${wheels.length} wheels unpacked into ${relative(root, goal)} (${(size / 1e6).toFixed(1)} MB)`);
}
