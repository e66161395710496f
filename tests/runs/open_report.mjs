// Opens a report in Chromium as a user would and tells what happened, as JSON on standard output.
//   node open_report.mjs FILE [light|dark] [SCREENSHOT] [LANGUAGE-TO-SWITCH-TO] [print]
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

import { chromium } from "playwright-core";

const [file, colorScheme = "light", screenshot, language, media] = process.argv.slice(2);
const home = mkdtempSync(join(tmpdir(), "ranksafe-report-"));
const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome", process.env.RANKSAFE_CHROMIUM].find((path) => path && existsSync(path));

const context = await chromium.launchPersistentContext(join(home, "profile"), {
    executablePath,
    headless: true,
    colorScheme,
    offline: true,
    reducedMotion: "reduce",
    viewport: { width: 1200, height: 900 },
    env: { ...process.env, HOME: home },
    args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
    const page = context.pages()[0];
    const [requests, problems, dialogs] = [[], [], []];
    page.on("request", (request) => requests.push(request.url()));
    page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("dialog", (dialog) => {
        dialogs.push(dialog.message());
        void dialog.dismiss();
    });
    const address = pathToFileURL(file).href;
    await page.goto(address, { waitUntil: "load" });
    if (language) {
        await page.locator(`label[for="language-${language}"]`).click();
    }
    if (media) {
        await page.emulateMedia({ media });
    }
    if (screenshot) {
        mkdirSync(dirname(screenshot), { recursive: true });
        await page.screenshot({ path: screenshot, fullPage: true });
    }
    // What a handler of an event would have been waiting for.
    await page.evaluate(() => {
        for (const each of document.querySelectorAll("*")) {
            ["mouseover", "focus", "toggle", "animationstart"].forEach((name) => each.dispatchEvent(new Event(name)));
        }
    });
    const seen = await page.evaluate(() => ({
        owned: globalThis.owned ?? null,
        links: [...document.querySelectorAll("[href], [src], [action], [data], [srcdoc]")].map((each) =>
            ["href", "src", "action", "data", "srcdoc"].map((name) => each.getAttribute(name) ?? "").join(""),
        ),
        handlers: [...document.querySelectorAll("*")].flatMap((each) => [...each.attributes].filter(({ name }) => name.startsWith("on"))).length,
        foreign: document.querySelectorAll("img, iframe, object, embed, form, base, link, audio, video, [http-equiv=refresh]").length,
        title: document.title,
        text: document.body.innerText,
        scripts: document.querySelectorAll("body script:not([type]), head script").length,
        plots: document.querySelectorAll(".uplot canvas").length,
        marked: [...document.querySelectorAll(".code tr.hit mark")].map((mark) => mark.textContent),
        background: getComputedStyle(document.body).backgroundColor,
        overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    }));
    console.log(JSON.stringify({ ...seen, problems, dialogs, requests: requests.filter((url) => url !== address) }));
} finally {
    await context.close();
    rmSync(home, { recursive: true, force: true });
}
