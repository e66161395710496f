// The report of a run in a panel, the history as a list, failures drawn from a log. After the runs: there is one to show.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { writeFileSync } from "node:fs";

import { folder, needsTorch, RUN_MILLISECONDS, workbench } from "../session.mjs";

/** The innermost text of a panel's page, from whichever frame holds it. */
function pageWith(text) {
    return workbench.until(`a page with ${text}`, async () => {
        for (const frame of workbench.page.frames()) {
            const content = await frame.locator("body").innerText({ timeout: 1_000 }).catch(() => "");
            if (content.includes(text)) {
                return frame;
            }
        }
        return undefined;
    });
}

test("a place in the report opens in the editor", { skip: needsTorch }, async () => {
    await workbench.open("failing_run.py");
    await workbench.lens("Open report").click();
    const frame = await pageWith("Timeline of the ranks");
    await frame.locator(".place a", { hasText: "failing_run.py:9" }).first().click();
    await workbench.tab("failing_run.py").waitFor();
    await workbench.page.locator(".statusbar-item", { hasText: "Ln 9, Col 1" }).waitFor();
});

test("the report opens in a panel from its lens, in the editor's colours", { skip: needsTorch }, async () => {
    await workbench.open("failing_run.py");
    await workbench.lens("Open report").click();
    const frame = await pageWith("Timeline of the ranks");
    await workbench.rendered("h1", "failing_run.py failed");
    await workbench.rendered(".code tr.hit mark", "batch * weights");
    const light = await frame.locator("body").evaluate((body) => getComputedStyle(body).backgroundColor);
    assert.equal(light, "rgb(255, 255, 255)");
    const scripts = await frame.locator("script").count();
    assert.ok(scripts <= 1, "nothing but the editor's own script");
    await frame.locator('label[for="language-zh-cn"]').click();
    await workbench.rendered("h2", "各 rank 的时间线");
    await workbench.screenshot("report");
});

test("past runs are a list, and a chosen one shows its report", { skip: needsTorch }, async () => {
    await workbench.pick("ranksafe: Show Past Runs", "failing_run", "failing_run.py", async (entry) => {
        assert.match(await entry.innerText(), /failed/);
        await workbench.screenshot("past-runs");
    });
    await workbench.rendered("h1", "failing_run.py failed");
});

test("a log of another machine is drawn on the files here", async () => {
    const log = ["Traceback (most recent call last):", '  File "/job/7/project/metrics.py", line 1, in <module>', "ValueError: from a log"].join("\n");
    writeFileSync(join(folder, "job.log"), `${log}\n`);
    await workbench.open("job.log");
    await workbench.pick("ranksafe: Annotate from Log", "This file", "This file: job.log");
    await workbench.notification("job.log: 1 failures");
    await workbench.problem(/ValueError: from a log/);
});

test("the Testing view tells of past runs and runs a script again", { skip: needsTorch }, async () => {
    await workbench.command("Testing: Focus on Test Explorer View");
    const row = workbench.page.locator(".test-explorer .monaco-list-row", { hasText: "failing_run.py" });
    await row.waitFor();
    await row.locator(".codicon-testing-failed-icon").waitFor();
    await workbench.screenshot("testing-view");
    await row.hover();
    await row.locator(".action-label.codicon-testing-run-icon").click();
    // It runs, and fails again.
    await row.locator(".codicon-testing-failed-icon").waitFor({ state: "detached" });
    await row.locator(".codicon-testing-failed-icon").waitFor({ timeout: RUN_MILLISECONDS });
    await workbench.screenshot("testing-results");
});

test("a launch in another engine's words goes to the clipboard", async () => {
    await workbench.open("failing_run.py");
    await workbench.pick("ranksafe: Copy Launch Command", "Sky", "SkyPilot");
    const box = workbench.quickInputBox();
    await workbench.until("the question for the number of nodes", async () => (await box.inputValue()) === "1");
    await box.fill("2");
    await workbench.page.keyboard.press("Enter");
    const copied = await workbench.until("the text", async () => {
        const text = await workbench.page.evaluate(() => navigator.clipboard.readText());
        return text.includes("num_nodes: 2") && text;
    });
    assert.match(copied, /accelerate launch .*--machine_rank "\$SKYPILOT_NODE_RANK"/);
    assert.match(copied, /failing_run\.py/);
});
