// A package that was just installed, where there is one Python and nothing else: `make release-check` runs this alone.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { onDisk, workbench } from "../session.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "../../../..");

test("the server starts and finds", async () => {
    const squiggle = await workbench.squiggle("warning", '"auto"');
    assert.equal(squiggle.line, 7);
    await workbench.screenshot("start");
});

test("it runs on the Python of PATH", async () => {
    const version = execFileSync(process.env.RANKSAFE_ONLY_PYTHON, ["-c", "import platform; print(platform.python_version())"], { encoding: "utf8" });
    const status = await workbench.until("the server's version", async () => {
        const text = await workbench.languageStatus();
        return /ranksafe \d+\.\d+/.test(text) && text;
    });
    assert.ok(status.includes(`Python ${version.trim()}`), status);
});

test("a fix is applied", async () => {
    await workbench.openActions('"auto"');
    await workbench.chooseAction(/device_map/);
    await workbench.until("the fix in the editor", async () => !(await workbench.editorText()).includes('device_map="auto"'));
    await workbench.save();
    assert.ok(!onDisk("auto_device_map.py").includes('device_map="auto"'));
});

test("its page in the editor shows its pictures", async () => {
    // GitHub's answer, without a network: the file of the checkout that the address names.
    const address = /^https:\/\/github\.com\/ranksafe\/ranksafe\/raw\/[^/]+\/(.+)$/;
    await workbench.page.context().route(address, (route) => route.fulfill({ path: join(root, address.exec(route.request().url())[1]) }));
    await workbench.command("Extensions: Show Installed Extensions");
    await workbench.page.locator(".extensions-list .monaco-list-row", { hasText: "ranksafe: multi-GPU" }).click();
    await workbench.rendered("h1", "ranksafe");
    await workbench.until("both pictures", async () => {
        const widths = workbench.page.frames().map((frame) => frame.locator("img[src*='/docs/images/']").evaluateAll((nodes) => nodes.map((node) => node.naturalWidth)).catch(() => []));
        return (await Promise.all(widths)).flat().filter((width) => width > 0).length === 2;
    });
    await workbench.screenshot("extension-page");
});
