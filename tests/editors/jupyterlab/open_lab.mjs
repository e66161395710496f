// Opens a file in JupyterLab, in Chromium, tells as JSON what jupyterlab-lsp shows of it, and writes something harmless
// over it until that is gone.
//   RANKSAFE_CHROMIUM=... node open_lab.mjs ADDRESS SCREENSHOT
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { chromium } from "playwright-core";

const [address, screenshot] = process.argv.slice(2);
const home = mkdtempSync(join(tmpdir(), "ranksafe-lab-"));
const context = await chromium.launchPersistentContext(join(home, "profile"), {
    executablePath: process.env.RANKSAFE_CHROMIUM,
    headless: true,
    reducedMotion: "reduce",
    viewport: { width: 1280, height: 900 },
    env: { ...process.env, HOME: home },
    args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
    const page = context.pages()[0];
    page.setDefaultTimeout(120_000);
    await page.goto(address, { waitUntil: "domcontentloaded" });
    const squiggles = page.locator('[class*="cm-lintRange"]');
    const squiggle = squiggles.first();
    await squiggle.waitFor();
    const under = await squiggle.innerText();
    await squiggle.hover();
    const tooltip = page.locator(".cm-tooltip .cm-diagnostic").first();
    await tooltip.waitFor();
    mkdirSync(dirname(screenshot), { recursive: true });
    await page.screenshot({ path: screenshot });
    const message = await tooltip.innerText();
    await squiggle.click();
    await page.keyboard.press("Control+A");
    await page.keyboard.type("model = None");
    await squiggles.last().waitFor({ state: "detached" });
    console.log(JSON.stringify({ under, message }));
} finally {
    await context.close();
    rmSync(home, { recursive: true, force: true });
}
