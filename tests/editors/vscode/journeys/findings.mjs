// Findings while the code is read and typed.
import assert from "node:assert/strict";
import { test } from "node:test";

import { onDisk, restore, workbench } from "../session.mjs";
import { comes } from "../waiting.mjs";

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
    // A hover that comes up meanwhile closes the list of actions and takes the click.
    await workbench.until("the page of RS201", async () => {
        await workbench.openActions('"auto"');
        await workbench.chooseAction(/page of RS201/);
        return comes(workbench.page.locator(".tab.active", { hasText: "Preview README" }));
    });
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
    await workbench.lightBulb("ones");
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

test("a rule is left out of the whole project by the light bulb", async () => {
    await workbench.open("half_typed.py");
    await workbench.openActions('"auto"');
    await workbench.screenshot("ignore");
    await workbench.chooseAction(/in this project \(pyproject\.toml\)/);
    await workbench.open("pyproject.toml");
    await workbench.until("the rule in the file", async () => (await workbench.editorText()).includes('ignore = ["RS201"]'));
    await workbench.save();
    await workbench.open("half_typed.py");
    await workbench.until("RS201 to go", async () => !(await workbench.squiggles()).some(({ text }) => text === '"auto"'));
    restore("pyproject.toml");
    await workbench.squiggle("warning", '"auto"');
});

test("lenses come although the focus leaves a file that was just opened", async () => {
    await workbench.problemsView.open();
    await workbench.openInPassing("endless_run.py");
    await workbench.lens("Run on").waitFor();
});

test("a notebook cell", async () => {
    await workbench.open("notebook.ipynb");
    await workbench.squiggle("warning", '"auto"');
    await workbench.screenshot("notebook");
});
