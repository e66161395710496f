// npm run test:editors: user journeys in the real workbench and extension host.
//   node tests/editors/vscode/run.mjs [OPTIONS of node --test] [FILE.mjs]     another file than journeys.mjs
//
//   RANKSAFE_TEST_TORCH_PYTHON   a Python with torch and accelerate, for the journeys that run a script
//   RANKSAFE_VSIX                a package to test; else one is built
//   RANKSAFE_ONLY_PYTHON         a Python: PATH has nothing else, and only journeys/start.mjs is made
//   RANKSAFE_TEST_EDITOR         newest (or nothing), or lowest: the lowest supported VS Code that can be had
//   RANKSAFE_JOURNEYS            short: without the long ones, as in make test
//   RANKSAFE_SCREENSHOTS         where the screenshots go; else build/editor-screenshots
//   RANKSAFE_UI_SECONDS          how long a journey waits for something to appear; else 60
//   RANKSAFE_CACHE               where code-server is kept between runs
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { ensureCodeServer } from "./ensureCodeServer.mjs";
import { ensureChromium, MissingPrerequisite } from "./systemPackages.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "../../..");

function packaged() {
    if (process.env.RANKSAFE_VSIX) {
        return process.env.RANKSAFE_VSIX;
    }
    execFileSync(process.execPath, [join(root, "client/bundle/package.mjs"), "--local"], { cwd: root, stdio: ["ignore", "ignore", "inherit"] });
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    return join(root, `dist/ranksafe-${process.platform}-${process.arch}-${version}.vsix`);
}

/** What stands in for the extension Python Debugger. */
function packagedDebugger() {
    const vsix = join(root, "build/debugger.vsix");
    const words = ["package", "--no-dependencies", "--allow-missing-repository", "--skip-license", "--out", vsix];
    mkdirSync(dirname(vsix), { recursive: true });
    execFileSync(process.execPath, [join(root, "node_modules/@vscode/vsce/vsce"), ...words], { cwd: join(here, "debugger"), stdio: ["ignore", "ignore", "inherit"] });
    return vsix;
}

function prerequisites() {
    const { node, entry } = ensureCodeServer();
    return { RANKSAFE_TEST_NODE: node, RANKSAFE_TEST_CODE_SERVER: entry, RANKSAFE_CHROMIUM: ensureChromium() };
}

let found;
try {
    found = prerequisites();
} catch (error) {
    if (!(error instanceof MissingPrerequisite)) {
        throw error;
    }
    console.log(`SKIPPED: journeys in VS Code: ${error.message}`);
    process.exit(process.env.CI === "true" ? 1 : 0);
}

const start = process.env.RANKSAFE_ONLY_PYTHON;
const torch = process.env.RANKSAFE_TEST_TORCH_PYTHON;
if (!torch && !start) {
    console.log("SKIPPED: journeys in VS Code that run a script: set RANKSAFE_TEST_TORCH_PYTHON to a Python with torch and accelerate");
}
if (torch && !existsSync(torch)) {
    throw new Error(`RANKSAFE_TEST_TORCH_PYTHON=${torch} does not exist`);
}
const environment = {
    ...process.env,
    ...found,
    RANKSAFE_VSIX: packaged(),
    RANKSAFE_TEST_DEBUGGER: packagedDebugger(),
    RANKSAFE_SCREENSHOTS: process.env.RANKSAFE_SCREENSHOTS || join(root, "build/editor-screenshots"),
};
const given = process.argv.slice(2);
const files = given.some((word) => word.endsWith(".mjs")) ? [] : [join(here, start ? "journeys/start.mjs" : "journeys.mjs")];
const tests = spawn(process.execPath, ["--test", "--test-reporter=spec", ...given, ...files], { env: environment, stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => tests.kill(signal));
}
tests.on("exit", (code) => process.exit(code ?? 1));
