// Builds dist/ranksafe-TARGET-VERSION.vsix, which needs no network to install or start.
//   node client/bundle/package.mjs [--target linux-x64 | universal] [--ref v0.1.0] [--local]
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { bundleLibraries } from "./libraries.mjs";
import { thisTarget, UNIVERSAL } from "./platforms.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const { values } = parseArgs({ options: { target: { type: "string", default: thisTarget() }, ref: { type: "string", default: "HEAD" }, local: { type: "boolean" } } });
const target = values.target;
const { version, homepage } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

function copySources() {
    // What tools/prebuild_rehearsal.py compiled fits Linux on x86-64 only; elsewhere it would be weight.
    const leftOut = ["__pycache__", ".mypy_cache", ".ruff_cache", "cases.md", ...(target === "linux-x64" ? [] : ["prebuilt"])];
    const isSource = (path) => !leftOut.includes(basename(path)) && !path.endsWith(".pyc");
    for (const [from, to] of [
        ["server/ranksafe", "bundled/server/ranksafe"],
        ["rules/ranksafe_rules", "bundled/rules/ranksafe_rules"],
    ]) {
        rmSync(join(root, to), { recursive: true, force: true });
        cpSync(join(root, from), join(root, to), { recursive: true, filter: isSource });
    }
}

function run(program, ...args) {
    execFileSync(process.execPath, [join(root, program), ...args], { cwd: root, stdio: "inherit" });
}

bundleLibraries({ root, target, cache: join(root, "build/wheels"), goal: join(root, "bundled/libs") });
copySources();
run("client/esbuild.mjs", "--production");
mkdirSync(join(root, "dist"), { recursive: true });
const vsix = `dist/ranksafe-${target}-${version}.vsix`;
// Editors and the marketplaces show pictures of the README from https addresses only, so all its links become addresses.
const links = ["--baseContentUrl", `${homepage}/blob/${values.ref}`, "--baseImagesUrl", `${homepage}/raw/${values.ref}`];
const platform = target === UNIVERSAL ? [] : ["--target", target];
// What stays on this machine is not searched for secrets, which takes most of the time.
const search = values.local ? ["--allow-package-all-secrets", "--allow-package-env-file"] : [];
run("node_modules/@vscode/vsce/vsce", "package", "--no-dependencies", ...search, ...platform, ...links, "--out", vsix);
console.log(vsix);
