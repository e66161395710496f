// make vscode without a desktop VS Code: the same workbench, served to a browser on loopback, with the extension in it.
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { CodeServer } from "../tests/editors/vscode/codeServer.mjs";
import { ensureCodeServer } from "../tests/editors/vscode/ensureCodeServer.mjs";
import { MissingPrerequisite, namedPackage } from "../tests/editors/vscode/systemPackages.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const vsix = join(root, `dist/ranksafe-${process.platform}-${process.arch}-${version}.vsix`);
if (!existsSync(vsix)) {
    throw new Error(`${vsix} is missing: npm run package`);
}

/** What the system lacks is named; its package manager is the user's business. */
function codeServer() {
    try {
        return ensureCodeServer(namedPackage);
    } catch (error) {
        if (!(error instanceof MissingPrerequisite)) {
            throw error;
        }
        console.error(`==> ${error.message}`);
        process.exit(1);
    }
}

const found = codeServer();
const state = mkdtempSync(join(tmpdir(), "ranksafe-workbench-"));
const server = new CodeServer({ ...found, state });
async function end() {
    await server.stop();
    rmSync(state, { recursive: true, force: true });
    process.exit(0);
}
process.on("SIGINT", end);
process.on("SIGTERM", end);

server.install(vsix);
await server.start();
console.log(`\nOpen this address; Ctrl+C ends it:\n\n  ${server.address(root, join(root, "examples/finetune.py"))}\n`);
