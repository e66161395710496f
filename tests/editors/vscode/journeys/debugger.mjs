// A debugger on one rank of a run; the others wait for it.
import { test } from "node:test";

import { needsTorch, RUN_MILLISECONDS, workbench } from "../session.mjs";

test("a debugger stops the chosen rank at a breakpoint, and the run goes on from there", { skip: needsTorch }, async () => {
    await workbench.open("debugged_run.py");
    await workbench.lens("Run on").waitFor();
    await workbench.token("reduce").click();
    await workbench.page.keyboard.press("F9");
    const breakpoint = workbench.page.locator(".editor-instance .codicon-debug-breakpoint").first();
    await breakpoint.waitFor();
    await workbench.pick("ranksafe: Run on GPUs and Debug a Rank", "rank 1", "rank 1");
    await workbench.dialog().or(workbench.lens("Cancel run")).first().waitFor();
    if (await workbench.dialog().isVisible()) {
        await workbench.clickDialog("Run");
    }
    await workbench.page.locator(".debug-top-stack-frame-line").waitFor({ timeout: RUN_MILLISECONDS });
    await workbench.page.locator(".statusbar-item", { hasText: "Ln 11," }).waitFor();
    const variables = workbench.page.locator(".debug-variables .monaco-list-row");
    await variables.filter({ hasText: "Locals" }).click();
    await variables.filter({ hasText: /^rank\s*[:=]\s*1$/ }).waitFor();
    await workbench.screenshot("debugger");
    await workbench.page.locator(".debug-toolbar .codicon-debug-continue").click();
    await workbench.testOutput(/the sum on rank 1 is 2/, RUN_MILLISECONDS);
    await workbench.lens("Passed on 2 ranks").waitFor({ timeout: RUN_MILLISECONDS });
    await workbench.page.locator(".debug-toolbar").waitFor({ state: "hidden" });
    await workbench.token("reduce").click();
    await workbench.page.keyboard.press("F9");
    await breakpoint.waitFor({ state: "detached" });
});
