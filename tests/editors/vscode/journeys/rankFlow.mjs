// A deadlock over two files: one rank alone calls a function whose collective is in another file.
import assert from "node:assert/strict";
import { test } from "node:test";

import { onDisk, restore, workbench } from "../session.mjs";

const CALL = "metrics.mean_over_ranks(loss)";

/** Waits until the Problems view, which shows files that are not in front, too, has no deadlock any more. */
async function noDeadlock() {
    await workbench.until("RS401 to go", async () => !(await workbench.problems()).some((row) => /RS401/.test(row)));
}

test("a deadlock over two files, with both arms, is removed by its quick fix", async () => {
    await workbench.open("guarded_metrics.py");
    const squiggle = await workbench.squiggle("warning", CALL);
    assert.equal(squiggle.line, 13);
    assert.equal(await workbench.tabOf("metrics.py").count(), 0, "only the caller is open");
    const row = await workbench.problem(/RS401/);
    assert.match(row, /rank 0 will wait in all_reduce, while the other ranks will go to barrier/);
    await workbench.problemsView.expand("RS401");
    await workbench.problem(/^guarded_metrics\.py \[Ln 12, Col 12\] : the ranks separate here/);
    await workbench.problem(/^metrics\.py \[Ln 9, Col 5\] : all_reduce is performed here/);
    await workbench.problem(/^guarded_metrics\.py \[Ln 14, Col 9\] : the other ranks go on here/);
    await workbench.screenshot("deadlock");

    await workbench.openActions("mean_over_ranks");
    await workbench.chooseAction("Let all ranks perform all_reduce");
    await workbench.until("the fix in the editor", async () => (await workbench.editorText()).includes("print(step, result)"));
    await noDeadlock();
    await workbench.save();
    assert.ok(onDisk("guarded_metrics.py").includes(`        result = ${CALL}\n        if dist.get_rank() == 0:\n            print(step, result)\n`));
    await workbench.screenshot("deadlock-fixed");
});

test("the deadlock goes when the collective in the other file goes", async () => {
    restore("guarded_metrics.py");
    await workbench.open("guarded_metrics.py");
    await workbench.squiggle("warning", CALL);
    await workbench.problem(/RS401/);
    await workbench.problemsView.expand("RS401");
    await (await workbench.problemsView.row("all_reduce is performed here")).dblclick();
    await workbench.tab("metrics.py").waitFor();
    await workbench.page.locator(".statusbar-item", { hasText: "Ln 9," }).waitFor();
    await workbench.token("all_reduce").click();
    await workbench.page.keyboard.press("Control+Shift+K");
    await workbench.until("the line to go", async () => !(await workbench.editorText()).includes("all_reduce"));
    await workbench.save();
    assert.ok(!onDisk("metrics.py").includes("all_reduce"));
    await noDeadlock();
    await workbench.open("guarded_metrics.py");
    await workbench.token("mean_over_ranks").waitFor();
    assert.ok((await workbench.squiggles()).every(({ text }) => text !== CALL));
    await workbench.screenshot("deadlock-gone");
});
