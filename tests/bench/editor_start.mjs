// How long a user waits for the first squiggle, and what the extension adds to VS Code's start, by VS Code's own report.
//   node tests/editors/vscode/run.mjs tests/bench/editor_start.mjs
import { test } from "node:test";

import { codeServer, folder, workbench } from "../editors/vscode/session.mjs";

const REPETITIONS = 5;
const FILE = "auto_device_map.py";
/** VS Code starts extensions that nobody waits for up to five seconds after its window. */
const WINDOW_SETTLES_MILLISECONDS = 8_000;
const WINDOW_IS_KEPT_MILLISECONDS = 6_000;

/** Notes when the text of the file and when its first squiggle are drawn. */
function watch() {
    const times = {};
    const look = () => {
        const now = performance.now();
        if (!times.text && document.querySelector(".editor-instance .view-line span span")) {
            times.text = now;
        }
        if (!times.squiggle && document.querySelector(".editor-instance .squiggly-warning, .editor-instance .squiggly-error")) {
            times.squiggle = now;
        }
        if (!times.squiggle) {
            requestAnimationFrame(look);
        }
    };
    window.firstSquiggle = times;
    look();
}

async function secondsToSquiggle() {
    await workbench.goto(codeServer.address(folder));
    await workbench.page.waitForTimeout(WINDOW_SETTLES_MILLISECONDS);
    await workbench.page.evaluate(watch);
    await workbench.open(FILE);
    await workbench.until("a squiggle", () => workbench.page.evaluate(() => window.firstSquiggle.squiggle));
    const { text, squiggle } = await workbench.page.evaluate(() => window.firstSquiggle);
    return (squiggle - text) / 1000;
}

/** The milliseconds that VS Code gives for loading the extension's code and for its activation, which others wait for. */
async function activation() {
    await workbench.command("Developer: Startup Performance");
    let row;
    await workbench.until("the extension in the report", async () => {
        await workbench.focusEditor();
        await workbench.page.keyboard.press("Control+A");
        await workbench.page.keyboard.press("Control+C");
        const report = await workbench.page.evaluate(() => navigator.clipboard.readText());
        row = report.split("\n").find((line) => line.includes("ranksafe.ranksafe") && line.includes("|"));
        return row;
    });
    const [, , , load, call] = row.split("|").map((cell) => cell.trim());
    return Number(load) + Number(call);
}

test("the start of the editor", async () => {
    const squiggle = [];
    const activated = [];
    for (let turn = 0; turn < REPETITIONS; turn += 1) {
        squiggle.push(await secondsToSquiggle());
        activated.push(await activation());
        // The window that is opened next shows again what this one showed; it is kept in the browser after a while.
        await workbench.command("View: Close All Editors");
        await workbench.page.waitForTimeout(WINDOW_IS_KEPT_MILLISECONDS);
    }
    console.log(`FIGURES ${JSON.stringify({ squiggle, activated })}`);
});
