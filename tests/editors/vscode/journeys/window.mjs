// What concerns the window as a whole: status, walkthrough, language, trust.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";

import { codeServer, folder, needsTorch, restore, RUN_MILLISECONDS, started, untrusted, USER_SETTINGS, workbench } from "../session.mjs";

test("the language status names the server and its Python", async () => {
    await workbench.open("auto_device_map.py");
    // The window may have been opened a moment ago: until the server runs, its start is told.
    const status = await workbench.until("the server's version", async () => {
        const text = await workbench.languageStatus();
        return /ranksafe \d+\.\d+/.test(text) && text;
    });
    assert.match(status, /Python 3\.\d+/);
    await workbench.screenshot("language-status");
});

test("debug information without names of files", async () => {
    // Another journey may have left its own text there.
    await workbench.page.evaluate(() => navigator.clipboard.writeText(""));
    await workbench.command("ranksafe: Copy Debug Information");
    const information = await workbench.until("the clipboard", () => workbench.page.evaluate(() => navigator.clipboard.readText()));
    assert.equal(JSON.parse(information).server.state, "running");
    assert.ok(!information.includes(folder));
});

test("the walkthrough opens a copy of the example project", async () => {
    await workbench.pick("Welcome: Open Walkthrough", "Make training code safe", "Make training code safe");
    const { page } = workbench;
    const button = page.locator(".gettingStartedContainer .monaco-button", { hasText: "Open the Example Project" });
    await button.waitFor();
    await workbench.screenshot("walkthrough");
    const opened = page.context().waitForEvent("page");
    await button.click();
    const example = await opened;
    await example.locator(".explorer-folders-view .monaco-list-row", { hasText: "finetune.py" }).waitFor();
    assert.match(new URL(example.url()).searchParams.get("folder") ?? "", /globalStorage\/ranksafe\.ranksafe\/examples$/);
    await example.close();
});

test("Chinese messages", async () => {
    restore("auto_device_map.py");
    await workbench.setUserSettings({ ...USER_SETTINGS, "ranksafe.language": "zh-cn" });
    await workbench.open("auto_device_map.py");
    await workbench.squiggle("warning", '"auto"');
    const row = await workbench.problem(/RS201.*[\u4e00-\u9fff]|[\u4e00-\u9fff].*RS201/);
    assert.match(row, /[\u4e00-\u9fff]{4}/);
    await workbench.lens("在").first().waitFor();
    assert.match(await workbench.hover('"auto"'), /[\u4e00-\u9fff]{4}/);
    await workbench.screenshot("chinese");
});

test("a run in Chinese, from its lens to what its failure means", { skip: needsTorch }, async () => {
    restore("failing_run.py");
    await workbench.open("failing_run.py");
    await workbench.lens("在 2 个 CPU rank 上运行").or(workbench.lens("在 GPU 上运行")).first().click();
    await workbench.dialog().or(workbench.lens("取消运行")).first().waitFor();
    if (await workbench.dialog().isVisible()) {
        await workbench.clickDialog("运行");
    }
    const message = await workbench.notification("failing_run.py 运行失败", RUN_MILLISECONDS);
    assert.match(message, /（rank 1, failing_run\.py:9）。你的这一行，或它所调用的编译代码，抛出了该 RuntimeError/);
    await workbench.lens("秒后失败：打开报告").waitFor();
    await workbench.screenshot("chinese-run");
});

test("back to English without a restart", async () => {
    await workbench.setUserSettings(USER_SETTINGS);
    await workbench.problem(/RS201.*loaded with|loaded with.*RS201/);
});

test("an untrusted workspace: squiggles, no lens, and nothing of the folder is started", async () => {
    const trap = `#!/bin/sh\ntouch '${started}'\nexec python3 "$@"\n`;
    for (const name of [".venv/bin/python", ".venv/bin/python3", "python3"]) {
        mkdirSync(dirname(join(untrusted, name)), { recursive: true });
        writeFileSync(join(untrusted, name), trap, { mode: 0o755 });
    }
    const settings = { "ranksafe.serverInterpreter": join(untrusted, "python3"), "ranksafe.interpreter": join(untrusted, ".venv/bin/python") };
    mkdirSync(join(untrusted, ".vscode"));
    writeFileSync(join(untrusted, ".vscode/settings.json"), JSON.stringify(settings));
    codeServer.writeSettings("User", { ...USER_SETTINGS, "security.workspace.trust.enabled": true, "security.workspace.trust.startupPrompt": "never", "security.workspace.trust.banner": "always" });
    codeServer.writeSettings("Machine", {});
    await workbench.goto(codeServer.address(untrusted, join(untrusted, "auto_device_map.py")));
    await workbench.page.getByText("Restricted Mode").first().waitFor();
    await workbench.squiggle("warning", '"auto"');
    // The server answers requests in order: after this hover, the lenses of the file have been answered too.
    await workbench.hover('"auto"');
    assert.deepEqual(await workbench.lenses(), []);
    assert.ok(!existsSync(started), "an interpreter of the folder was started");
    await workbench.screenshot("untrusted");
});

test("trust, once given, brings the lenses, and still no interpreter of the folder's choice", async () => {
    await workbench.trustWorkspace();
    await workbench.page.locator(".statusbar-item", { hasText: "Restricted Mode" }).waitFor({ state: "hidden" });
    await workbench.open("auto_device_map.py");
    await workbench.lens("Run on").waitFor();
    await workbench.squiggle("warning", '"auto"');
    assert.ok(!existsSync(started), "an interpreter of the folder was started");
    await workbench.screenshot("trusted");
});
