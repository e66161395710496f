// What a user does in VS Code, step by step, with one code-server and one page for all of it.
// Each journey opens what it needs; journeys only share the window, so that their start-up is paid once.
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { CodeServer } from "./codeServer.mjs";
import { Workbench } from "./workbench.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const torchPython = process.env.RANKSAFE_TEST_TORCH_PYTHON;
const needsTorch = torchPython || process.env.CI === "true" ? false : "RANKSAFE_TEST_TORCH_PYTHON names no Python with torch and accelerate";
/** A run starts a launcher and imports torch twice; on a busy machine that takes a minute. */
const RUN_MILLISECONDS = 3_000 * Number(process.env.RANKSAFE_UI_SECONDS || 60);

const state = mkdtempSync(join(tmpdir(), "ranksafe-editors-"));
const folder = join(state, "project");
const untrusted = join(state, "downloaded");
/** Comes into being when an interpreter of the untrusted folder is started. */
const started = join(state, "started");
const USER_SETTINGS = {
    "security.workspace.trust.enabled": false,
    "workbench.startupEditor": "none",
    "workbench.colorTheme": "Light Modern",
    "workbench.editor.useModal": "off",
    "files.autoSave": "off",
    "editor.minimap.enabled": false,
    "editor.stickyScroll.enabled": false,
    "chat.disableAIFeatures": true,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "telemetry.telemetryLevel": "off",
    // Screenshots show things, not things fading in.
    "workbench.reduceMotion": "on",
    "remote.autoForwardPorts": false,
};
const MACHINE_SETTINGS = torchPython ? { "ranksafe.interpreter": torchPython } : {};

/** @type {CodeServer} */ let codeServer;
/** @type {Workbench} */ let workbench;

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => process.exit(1));
}

before(async () => {
    cpSync(join(here, "workspace"), folder, { recursive: true });
    mkdirSync(untrusted);
    for (const name of ["auto_device_map.py", "pyproject.toml"]) {
        cpSync(join(here, "workspace", name), join(untrusted, name));
    }
    codeServer = new CodeServer({ node: process.env.RANKSAFE_TEST_NODE, entry: process.env.RANKSAFE_TEST_CODE_SERVER, state });
    codeServer.writeSettings("User", USER_SETTINGS);
    codeServer.writeSettings("Machine", MACHINE_SETTINGS);
    codeServer.install(process.env.RANKSAFE_VSIX);
    codeServer.shareCompiledDevices();
    await codeServer.start();
    const home = join(state, "browser");
    mkdirSync(home);
    workbench = await Workbench.launch({ executable: process.env.RANKSAFE_CHROMIUM, home, screenshots: process.env.RANKSAFE_SCREENSHOTS });
    await workbench.goto(codeServer.address(folder, join(folder, "auto_device_map.py")));
});

after(async () => {
    await workbench?.close();
    await codeServer?.stop();
    if (!process.env.RANKSAFE_KEEP_STATE) {
        rmSync(state, { recursive: true, force: true });
    }
});

afterEach(async (context) => {
    if (context.passed === false) {
        await workbench.screenshot(`failed ${context.name}`).catch(() => undefined);
    }
});

/** Puts a file back as it is in the fixtures, whatever a journey did to it. */
function restore(name) {
    writeFileSync(join(folder, name), readFileSync(join(here, "workspace", name)));
}

function onDisk(name) {
    return readFileSync(join(folder, name), "utf8");
}

async function pidOf(name) {
    const file = join(folder, name);
    const text = await workbench.until(name, () => existsSync(file) && readFileSync(file, "utf8"), RUN_MILLISECONDS);
    return Number(text);
}

function isAlive(pid) {
    try {
        process.kill(pid, 0);
        return true;
    } catch {
        return false;
    }
}

/** Starts the script that never ends, with consent where none was given yet, and returns the ranks' process ids. */
async function startEndlessRun() {
    const files = ["rank-0.pid", "rank-1.pid"];
    files.forEach((name) => rmSync(join(folder, name), { force: true }));
    await workbench.open("endless_run.py");
    await workbench.lens("Run on").click();
    await workbench.dialog().or(workbench.lens("Cancel run")).first().waitFor();
    if (await workbench.dialog().isVisible()) {
        await workbench.clickDialog("Run");
    }
    const ranks = [await pidOf("rank-0.pid"), await pidOf("rank-1.pid")];
    assert.ok(ranks.every(isAlive));
    return ranks;
}

test("a squiggle below the right text, with the right words", async () => {
    await workbench.tab("auto_device_map.py").waitFor();
    const squiggle = await workbench.squiggle("warning", '"auto"');
    assert.equal(squiggle.line, 7);
    const row = await workbench.problem(/RS201/);
    assert.match(row, /device_map/);
    assert.match(row, /ranksafe/);
    assert.match(row, /\[Ln 7, Col 69\]/);
    await workbench.lens("Run on").waitFor();
    await workbench.screenshot("squiggle");
});

test("a hover that explains the finding and names the launch context", async () => {
    const text = await workbench.hover('"auto"');
    assert.match(text, /RS201/);
    assert.match(text, /2|two/i);
    await workbench.screenshot("hover");
    await workbench.page.keyboard.press("Escape");
});

test("the rule's page, as a reader wants it", async () => {
    await workbench.openActions('"auto"');
    await workbench.chooseAction(/page of RS201/);
    await workbench.page.locator(".tab.active", { hasText: "Preview README" }).waitFor();
    await workbench.rendered("h2", "What it does");
    await workbench.screenshot("rule-page");
    await workbench.open("auto_device_map.py");
});

test("a quick fix, applied and saved", async () => {
    await workbench.openActions('"auto"');
    const actions = await workbench.actions();
    await workbench.screenshot("quick-fix");
    assert.ok(actions.some((title) => /device_map/.test(title)), actions.join(" | "));
    assert.ok(actions.some((title) => /RS201/.test(title)), actions.join(" | "));
    await workbench.chooseAction(/device_map/);
    await workbench.until("the fix in the editor", async () => !(await workbench.editorText()).includes('device_map="auto"'));
    await workbench.save();
    assert.ok(!onDisk("auto_device_map.py").includes('device_map="auto"'));
    await workbench.until("RS201 to go", async () => !(await workbench.problems()).some((row) => /RS201/.test(row) && /device_map/.test(row)));
    await workbench.screenshot("fixed");
});

test("fix all: every safe finding of the file at once", async () => {
    await workbench.open("plain_tensor.py");
    await workbench.problem(/RS513.*\[Ln 11,/);
    await workbench.problem(/RS513.*\[Ln 12,/);
    await workbench.focusEditor();
    await workbench.command("Fix All");
    await workbench.until("both buffers registered", async () => (await workbench.editorText()).split("register_buffer").length === 3);
    await workbench.save();
    assert.match(onDisk("plain_tensor.py"), /register_buffer\("mask"/);
    assert.match(onDisk("plain_tensor.py"), /register_buffer\("scale"/);
    await workbench.screenshot("fix-all");
});

test("a half-typed file keeps its findings", async () => {
    await workbench.open("half_typed.py");
    const squiggle = await workbench.squiggle("warning", '"auto"');
    assert.equal(squiggle.line, 7);
    await workbench.screenshot("half-typed");
});

test("lenses come although the focus leaves a file that was just opened", async () => {
    await workbench.openProblems();
    await workbench.openInPassing("endless_run.py");
    await workbench.lens("Run on").waitFor();
});

test("a notebook cell", async () => {
    await workbench.open("notebook.ipynb");
    await workbench.squiggle("warning", '"auto"');
    await workbench.screenshot("notebook");
});

test("lenses over the entry; a run saves the buffer and asks for consent first", { skip: needsTorch }, async () => {
    await workbench.open("failing_run.py");
    await workbench.lens("Run on").waitFor();
    await workbench.lens("Smoke run").waitFor();
    await workbench.typeAtEnd("# edited");
    await workbench.screenshot("lens");
    await workbench.lens("Run on").click();
    await workbench.dialog().waitFor();
    const question = (await workbench.dialog().innerText()).replace(/\s+/g, " ");
    assert.match(question, /failing_run\.py/);
    assert.ok(question.includes(folder), question);
    assert.ok(question.includes(torchPython), question);
    await workbench.screenshot("consent");
    await workbench.clickDialog("Run");
    await workbench.until("the buffer on disk", () => onDisk("failing_run.py").includes("# edited"));
});

test("the failure of the run on its line, with the calls that led there", { skip: needsTorch }, async () => {
    const message = await workbench.notification("failing_run.py failed", RUN_MILLISECONDS);
    assert.match(message, /size of tensor/);
    const squiggle = await workbench.squiggle("error", "batch * weights");
    assert.equal(squiggle.line, 9);
    const row = await workbench.problem(/size of tensor a \(3\) must match the size of tensor b \(4\)/);
    assert.match(row, /rank 1/);
    assert.match(row, /\[Ln 9,/);
    await workbench.expandProblem("size of tensor");
    await workbench.problem(/called in main.*loss_of\(batch, accelerator\.process_index\)/);
    await workbench.lens("Open log").waitFor();
    await workbench.screenshot("run-failure");
});

test("the log of the run opens", { skip: needsTorch }, async () => {
    await workbench.open("failing_run.py");
    await workbench.lens("Open log").click();
    await workbench.until("the log", async () => /size of tensor a/.test(await workbench.editorText()));
    await workbench.screenshot("log");
});

test("the failure goes away when its line is edited", { skip: needsTorch }, async () => {
    await workbench.open("failing_run.py");
    await workbench.squiggle("error", "batch * weights");
    await workbench.token("return").click();
    await workbench.page.keyboard.press("End");
    await workbench.page.keyboard.type("  # here");
    await workbench.until("the failure to go", async () => (await workbench.squiggles()).every(({ severity }) => severity !== "error"));
    await workbench.save();
});

test("cancel by the lens ends every process of the run", { skip: needsTorch }, async () => {
    const ranks = await startEndlessRun();
    await workbench.lens("Cancel run").click();
    await workbench.until("the ranks to end", () => !ranks.some(isAlive));
    await workbench.lens("Run on").waitFor();
    await workbench.screenshot("cancelled");
});

test("cancel by the progress in the status bar", { skip: needsTorch }, async () => {
    const ranks = await startEndlessRun();
    await workbench.screenshot("progress");
    await workbench.cancelProgress("Run endless_run.py");
    await workbench.until("the ranks to end", () => !ranks.some(isAlive));
    await workbench.lens("Run on").waitFor();
});

test("a rehearsal on simulated GPUs draws what a second GPU would have hit", { skip: needsTorch }, async () => {
    await workbench.open("rehearsed_run.py");
    await workbench.lens("Rehearse on 2 GPUs").waitFor();
    await workbench.screenshot("rehearse-lens");
    await workbench.lens("Rehearse on 2 GPUs").click();
    await workbench.dialog().waitFor();
    assert.match(await workbench.dialog().innerText(), /simulated/);
    await workbench.clickDialog("Run");
    const message = await workbench.notification("rehearsed_run.py failed", RUN_MILLISECONDS);
    assert.match(message, /same device/);
    // The whole line: what a replica's thread raised is known from its printed traceback, by line only.
    const squiggle = await workbench.squiggle("error", "        return self.linear(batch) * self.scale");
    assert.equal(squiggle.line, 14);
    const row = await workbench.problem(/cuda:1/);
    assert.match(row, /RS513/);
    await workbench.screenshot("rehearsal-failure");
});

test("the picker of targets offers simulated GPUs", { skip: needsTorch }, async () => {
    await workbench.open("rehearsed_run.py");
    await workbench.command("Choose Where to Run");
    await workbench.page.locator(".quick-input-list-entry", { hasText: "simulated:4" }).click();
    await workbench.lens("Rehearse on 4 GPUs").waitFor();
    await workbench.screenshot("target");
});

test("the language status names the server and its Python", async () => {
    await workbench.open("auto_device_map.py");
    const status = await workbench.languageStatus();
    assert.match(status, /ranksafe \d+\.\d+/);
    assert.match(status, /Python 3\.\d+/);
    await workbench.screenshot("language-status");
});

test("debug information without names of files", async () => {
    await workbench.command("ranksafe: Copy Debug Information");
    const information = await workbench.until("the clipboard", () => workbench.page.evaluate(() => navigator.clipboard.readText()));
    assert.equal(JSON.parse(information).server.state, "running");
    assert.ok(!information.includes(folder));
});

test("the walkthrough opens a copy of the example project", async () => {
    await workbench.command("Welcome: Open Walkthrough");
    await workbench.pick("Make training code safe", "Make training code safe");
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
