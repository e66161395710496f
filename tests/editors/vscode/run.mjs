// npm run test:editors: user journeys in the real workbench and extension host.
//
//   RANKSAFE_TEST_TORCH_PYTHON   a Python with torch and accelerate, for the journeys that run a script
//   RANKSAFE_VSIX                a package to test; else one is built
//   RANKSAFE_SCREENSHOTS         where the screenshots go; else build/editor-screenshots
//   RANKSAFE_UI_SECONDS          how long a journey waits for something to appear; else 60
//   RANKSAFE_CACHE               where code-server is kept between runs
import { execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
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
    execFileSync(process.execPath, [join(root, "client/bundle/package.mjs")], { cwd: root, stdio: ["ignore", "ignore", "inherit"] });
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    return join(root, `dist/ranksafe-${process.platform}-${process.arch}-${version}.vsix`);
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

const torch = process.env.RANKSAFE_TEST_TORCH_PYTHON;
if (!torch) {
    console.log("SKIPPED: journeys in VS Code that run a script: set RANKSAFE_TEST_TORCH_PYTHON to a Python with torch and accelerate");
}
if (torch && !existsSync(torch)) {
    throw new Error(`RANKSAFE_TEST_TORCH_PYTHON=${torch} does not exist`);
}
const environment = {
    ...process.env,
    ...found,
    RANKSAFE_VSIX: packaged(),
    RANKSAFE_SCREENSHOTS: process.env.RANKSAFE_SCREENSHOTS || join(root, "build/editor-screenshots"),
};
const filter = process.argv.slice(2);
const tests = spawn(process.execPath, ["--test", "--test-reporter=spec", ...filter, join(here, "journeys.mjs")], { env: environment, stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => tests.kill(signal));
}
tests.on("exit", (code) => process.exit(code ?? 1));
