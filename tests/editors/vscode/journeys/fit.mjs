// Does it fit? From the lens to the line that takes too much, and to the edit after which it fits.
import assert from "node:assert/strict";
import { test } from "node:test";

import { needsTorch, restore, RUN_MILLISECONDS, workbench } from "../session.mjs";

/** Up to three runs in a row. */
const FORECAST_MILLISECONDS = 3 * RUN_MILLISECONDS;
const TOO_LARGE = "Does not fit 1 × T4: at least ";

async function pick(title, label) {
    await workbench.page.locator(".quick-input-title", { hasText: title }).waitFor();
    await workbench.quickInputBox().fill(label);
    await workbench.page.locator(".quick-input-list-entry", { hasText: label }).first().click();
}

/** What is out of view is not on the page, and how much is in view depends on the journeys before. */
async function scrollBy(key) {
    await workbench.page.keyboard.press("Control+1");
    await workbench.page.keyboard.press(key);
}

test("does it fit? The GPUs are asked for, and the answer stays on the lens", { skip: needsTorch }, async () => {
    await workbench.open("too_large.py");
    await workbench.page.keyboard.press("Control+End");
    await workbench.lens("Does it fit?").click();
    await pick("Which GPU is the memory forecast for?", "T4");
    await pick("How many of them?", "1 × T4");
    await workbench.dialog().waitFor();
    assert.match(await workbench.dialog().innerText(), /simulated:1/);
    await workbench.clickDialog("Run");
    await workbench.lens("Cancel forecast").waitFor();
    await workbench.lens(TOO_LARGE).waitFor({ timeout: FORECAST_MILLISECONDS });
    await workbench.notification("too_large.py does not fit 1 × Tesla T4");
    await workbench.screenshot("fit-lens");
});

test("what does not fit is drawn where memory ran out, with what held it", { skip: needsTorch }, async () => {
    const squiggle = await workbench.squiggle("error", "loss.backward()");
    assert.equal(squiggle.line, 22);
    await workbench.problem(/does not fit 1 × Tesla T4: needs .*\[Ln 22,/s);
    await workbench.problemsView.expand("does not fit 1 × Tesla T4");
    await workbench.problem(/8\.0 GiB at too_large\.py:21: activations/);
    await workbench.screenshot("fit-problem");
});

test("what was held when is a page, and the script is still there", { skip: needsTorch }, async () => {
    await workbench.lens("Timeline").click();
    await workbench.rendered("h1", "too_large.py does not fit");
    await workbench.rendered(".plot .u-legend", "activations");
    await workbench.screenshot("fit-timeline");
    // By its tab: in the list of files the page, which has the name in its title, may stand first.
    await workbench.tabOf("too_large.py").click();
    await workbench.lens(TOO_LARGE).waitFor();
});

test("what would make it fit is tried, told on the argument, and written by a quick fix", { skip: needsTorch }, async () => {
    await workbench.lens("What would make it fit?").click();
    await workbench.lens("Cancel forecast").waitFor();
    await workbench.lens(TOO_LARGE).waitFor({ timeout: FORECAST_MILLISECONDS });
    await workbench.until("no more to try", async () => !(await workbench.lenses()).includes("What would make it fit?"));
    await scrollBy("Control+Home");
    await workbench.page.mouse.move(5, 5);
    await workbench.token("--batch-size").hover();
    const hover = workbench.page.locator(".monaco-hover:not(.hidden) .monaco-hover-content", { hasText: "GPU memory" }).first();
    await hover.waitFor();
    assert.match((await hover.innerText()).replaceAll("\u00a0", " "), /--batch-size 131072 → 65536[^]*ranksafe fit too_large\.py/);
    await workbench.screenshot("fit-hover");
    await workbench.openActions("131072");
    await workbench.chooseAction(/--batch-size 131072 → 65536.*fits/);
    await workbench.until("the fix in the editor", async () => /default=65536\)[^]*default=2\)/.test(await workbench.editorText()));
    await scrollBy("Control+End");
    await workbench.lens("(before the last edits)").waitFor();
    await workbench.save();
    await workbench.lens("(before the last edits)").click();
    await workbench.lens("Fits 1 × T4: ").waitFor({ timeout: FORECAST_MILLISECONDS });
    await workbench.until("the squiggle to go", async () => (await workbench.squiggles()).every(({ severity }) => severity !== "error"));
    await workbench.screenshot("fit-fits");
    restore("too_large.py");
});
