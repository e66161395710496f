// Runs and rehearsals, from their lens to the failure on its line.
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { codeServer, folder, longTest, needsTorch, onDisk, RUN_MILLISECONDS, torchPython, USER_SETTINGS, workbench } from "../session.mjs";

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

test("the ranks' output comes while the script runs", { skip: needsTorch }, async () => {
    await workbench.testOutput(/\[rank [01]\]/, RUN_MILLISECONDS);
    await workbench.screenshot("run-output");
});

test("the failure of the run on its line, with the calls that led there", { skip: needsTorch }, async () => {
    const message = await workbench.notification("failing_run.py failed", RUN_MILLISECONDS);
    assert.match(message, /size of tensor.*rank 1, failing_run\.py:9.*\.$/s);
    await workbench.notificationButton("failing_run.py failed", "Report").waitFor();
    const squiggle = await workbench.squiggle("error", "batch * weights");
    assert.equal(squiggle.line, 9);
    const row = await workbench.problem(/size of tensor a \(3\) must match the size of tensor b \(4\)/);
    assert.match(row, /rank 1/);
    assert.match(row, /\[Ln 9,/);
    await workbench.problemsView.expand("size of tensor");
    await workbench.problem(/called in main.*loss_of\(batch, accelerator\.process_index\)/);
    await workbench.lens("Failed after").waitFor();
    await workbench.lens("Open log").waitFor();
    await workbench.tick("failed").waitFor();
    await workbench.screenshot("run-failure");
});

longTest("the failing line is shown when the run has ended, whatever was looked at", { skip: needsTorch }, async () => {
    await workbench.open("metrics.py");
    await workbench.open("failing_run.py");
    await workbench.lens("Run on").click();
    await workbench.tabOf("metrics.py").click();
    await workbench.tab("metrics.py").waitFor();
    await workbench.tab("failing_run.py").waitFor({ timeout: RUN_MILLISECONDS });
    await workbench.squiggle("error", "batch * weights");
    await workbench.notificationButton("failing_run.py failed", "Log").click();
    await workbench.until("the log", async () => /size of tensor a/.test(await workbench.editorText()));
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

test("a script without a main guard: one row of lenses above its training, and a run that passes", { skip: needsTorch }, async () => {
    await workbench.open("passing_run.py");
    await workbench.lens("Run on").waitFor();
    assert.equal((await workbench.lenses()).filter((text) => text.includes("Run on")).length, 1);
    await workbench.lens("Run on").click();
    await workbench.testOutput(/step 1 is done on rank 1/, RUN_MILLISECONDS);
    await workbench.lens("Passed on 2 ranks").waitFor({ timeout: RUN_MILLISECONDS });
    await workbench.tick("passed").waitFor();
    await workbench.screenshot("run-passed");
});

longTest("a run from the title bar", { skip: needsTorch }, async () => {
    await workbench.open("passing_run.py");
    await workbench.titleAction("Run on GPUs").click();
    await workbench.lens("Cancel run").waitFor();
    await workbench.lens("Passed on 2 ranks").waitFor({ timeout: RUN_MILLISECONDS });
    await workbench.screenshot("title-bar");
});

test("no lens for who wants none", { skip: needsTorch }, async () => {
    await workbench.setUserSettings({ ...USER_SETTINGS, "ranksafe.codeLens": false });
    await workbench.open("passing_run.py");
    await workbench.until("no lens", async () => (await workbench.lenses()).length === 0);
    await workbench.titleAction("Run on GPUs").waitFor();
    await workbench.setUserSettings(USER_SETTINGS);
    await workbench.open("passing_run.py");
    await workbench.lens("Run on").waitFor();
});

test("cancel by the lens ends every process of the run", { skip: needsTorch }, async () => {
    const ranks = await startEndlessRun();
    await workbench.lens("Cancel run").click();
    await workbench.until("the ranks to end", () => !ranks.some(isAlive));
    await workbench.lens("Run on").waitFor();
    await workbench.screenshot("cancelled");
});

test("where every rank of a run is", { skip: needsTorch }, async () => {
    const ranks = await startEndlessRun();
    await workbench.command("ranksafe: Show Where Every Rank Is");
    await workbench.until("both ranks", async () => /rank 0: [^]*endless_run\.py:\d+[^]*rank 1: /.test(await workbench.editorText()));
    await workbench.screenshot("stacks");
    await workbench.open("endless_run.py");
    await workbench.lens("Cancel run").click();
    await workbench.until("the ranks to end", () => !ranks.some(isAlive));
});

longTest("cancel by the progress in the status bar", { skip: needsTorch }, async () => {
    const ranks = await startEndlessRun();
    await workbench.screenshot("progress");
    await workbench.cancelProgress("Run endless_run.py");
    await workbench.until("the ranks to end", () => !ranks.some(isAlive));
    await workbench.lens("Run on").waitFor();
});

longTest("a run in a terminal: its output, its outcome, and Ctrl+C", { skip: needsTorch }, async () => {
    await workbench.setUserSettings({ ...USER_SETTINGS, "ranksafe.runIn": "terminal" });
    await workbench.open("passing_run.py");
    await workbench.lens("Run on").click();
    await workbench.terminalText(/\[rank 1\] step 1 is done on rank 1/, RUN_MILLISECONDS);
    await workbench.terminalText(/passing_run\.py passed on 2 ranks/, RUN_MILLISECONDS);
    await workbench.tick("passed").waitFor();
    await workbench.screenshot("run-terminal");
    const ranks = await startEndlessRun();
    await workbench.page.locator(".terminal-wrapper.active").click();
    await workbench.page.keyboard.press("Control+C");
    await workbench.until("the ranks to end", () => !ranks.some(isAlive));
    await workbench.terminalText(/cancelled/);
    await workbench.setUserSettings(USER_SETTINGS);
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

longTest("a rehearsal that passed says what it did not come to, and goes on to the end", { skip: needsTorch }, async () => {
    await workbench.open("validated_at_the_end.py");
    await workbench.page.keyboard.press("Control+End");
    await workbench.lens("Rehearse on 2 GPUs").click();
    const message = await workbench.notification("validated_at_the_end.py passed", RUN_MILLISECONDS);
    assert.match(message, /no rank was seen to reach RS401 \(line 11\), validate \(line 23\)\./);
    await workbench.testOutput(/validated_at_the_end\.py passed on 2 ranks/);
    await workbench.screenshot("rehearsal-unreached");
    await workbench.notificationButton("validated_at_the_end.py passed", "Rehearse to the End").click();
    const failure = await workbench.notification("validated_at_the_end.py failed", RUN_MILLISECONDS);
    assert.match(failure, /rank 1 ended while rank 0 was still waiting for it in a collective \(validated_at_the_end\.py:11\)/);
});

test("the picker of targets offers simulated GPUs", { skip: needsTorch }, async () => {
    await workbench.open("rehearsed_run.py");
    await workbench.command("Choose Where to Run");
    await workbench.page.locator(".quick-input-list-entry", { hasText: "simulated:4" }).click();
    await workbench.lens("Rehearse on 4 GPUs").waitFor();
    await workbench.screenshot("target");
});

test("a machine is added to the targets, and kept in the user's own file", { skip: needsTorch }, async () => {
    await workbench.open("rehearsed_run.py");
    await workbench.command("Choose Where to Run");
    await workbench.page.locator(".quick-input-list-entry", { hasText: "Add a machine, over ssh" }).click();
    await workbench.page.locator(".quick-input-message", { hasText: "user@host" }).waitFor();
    await workbench.quickInputBox().fill("me@gpu-box");
    await workbench.page.keyboard.press("Enter");
    await workbench.lens("Run on ssh:me@gpu-box").waitFor();
    assert.match(readFileSync(join(codeServer.home, ".config/ranksafe/hosts.toml"), "utf8"), /^\["me@gpu-box"\]$/m);
    await workbench.command("Choose Where to Run");
    await workbench.page.locator(".quick-input-list-entry", { hasText: "ssh:me@gpu-box" }).waitFor();
    await workbench.screenshot("targets");
    await workbench.page.locator(".quick-input-list-entry", { hasText: "local" }).click();
    await workbench.lens("Run on 2 CPU ranks").or(workbench.lens("Run on GPUs")).first().waitFor();
});
