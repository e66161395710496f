// A rehearsal that follows the saves. After the reports: a setting that starts the server anew makes it forget the runs.
import { test } from "node:test";

import { codeServer, MACHINE_SETTINGS, needsTorch, restore, RUN_MILLISECONDS, workbench } from "../session.mjs";

test("a rehearsal follows the saves: its finding is confirmed, and gone when it is mended", { skip: needsTorch }, async () => {
    codeServer.writeSettings("Machine", { ...MACHINE_SETTINGS, "ranksafe.rehearseOnSave": true });
    await workbench.open("rehearsed_run.py");
    await workbench.lens("Open log").waitFor({ state: "detached" });
    await workbench.lens("Rehearse on 2 GPUs").click();
    await workbench.lens("Cancel run").waitFor();
    await workbench.lens("Failed after").waitFor({ timeout: RUN_MILLISECONDS });
    await workbench.problem(/is a plain attribute.*Confirmed on 2 simulated GPUs/);
    await workbench.screenshot("rehearsal-confirmed");
    await workbench.openActions("ones");
    await workbench.chooseAction(/Register it as a buffer/);
    await workbench.until("the fix in the editor", async () => (await workbench.editorText()).includes("register_buffer"));
    await workbench.squiggle("error", "        return self.linear(batch) * self.scale");
    await workbench.save();
    await workbench.until("the failure to go", async () => (await workbench.squiggles()).every(({ severity }) => severity !== "error"), RUN_MILLISECONDS);
    await workbench.until("RS513 to go", async () => !(await workbench.problems()).some((row) => /RS513/.test(row)));
    await workbench.lens("Rehearsal passed on 2 GPUs").waitFor();
    await workbench.screenshot("rehearsal-on-save");
    restore("rehearsed_run.py");
    codeServer.writeSettings("Machine", MACHINE_SETTINGS);
});
