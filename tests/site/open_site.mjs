// Uses the documentation site in Chromium as files, without a network, and tells what was seen, as JSON.
//   RANKSAFE_CHROMIUM=... node open_site.mjs FOLDER SCREENSHOTS
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { chromium } from "playwright-core";

const [folder, screenshots] = process.argv.slice(2);
const root = `${pathToFileURL(folder).href}/`;
const home = mkdtempSync(join(tmpdir(), "ranksafe-site-"));
mkdirSync(screenshots, { recursive: true });
const PASTED = "[rank1]: RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete";

const context = await chromium.launchPersistentContext(join(home, "profile"), {
    executablePath: process.env.RANKSAFE_CHROMIUM,
    headless: true,
    offline: true,
    reducedMotion: "reduce",
    viewport: { width: 1280, height: 900 },
    env: { ...process.env, HOME: home },
    args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const page = context.pages()[0];
const seen = { problems: [], elsewhere: [] };
page.on("request", (request) => /^(file|data|blob):/.test(request.url()) || seen.elsewhere.push(request.url()));
page.on("console", (message) => message.type() === "error" && seen.problems.push(message.text()));
page.on("pageerror", (error) => seen.problems.push(String(error)));

const shoot = (name) => page.screenshot({ path: join(screenshots, `${name}.png`) });
const codes = () => page.locator("tr[data-filtered]:visible td:first-child").allInnerTexts();

async function search(words) {
    await page.locator(".md-search__input").click();
    await page.locator(".md-search__input").clear();
    // The space stands for the keys of an input method, by which the theme notices Chinese words.
    await page.keyboard.type(`${words} `);
    await page.locator(".md-search-result__link").first().waitFor();
}

async function filter(language, start) {
    await page.goto(`${start}rules.html`);
    const all = (await codes()).length;
    await page.selectOption("select[name=symptom]", "hangs");
    const hangs = await codes();
    const headings = await page.locator("article h2:visible").count();
    await shoot(`rules-${language}`);
    await page.selectOption("select[name=symptom]", "");
    await page.fill("input[name=text]", "set-epoch");
    const text = await codes();
    await page.fill("input[name=text]", "no such words");
    const nothing = await codes();
    return { all, hangs, headings, text, nothing, heading: await page.locator("h1").innerText() };
}

async function paste(language, start) {
    await page.goto(`${start}errors.html`);
    await page.fill("textarea", PASTED);
    await shoot(`errors-${language}`);
    return { message: await page.locator("section.entry:visible").count(), pasted: await page.locator(".wording.found:visible").allInnerTexts() };
}

try {
    for (const [language, start] of [["en", root], ["zh-cn", `${root}zh-cn/`]]) {
        seen[language] = { ...(await filter(language, start)), ...(await paste(language, start)) };
        await page.goto(`${start}index.html`);
        await shoot(`start-${language}`);
        await search("RS310");
        const link = await page.locator(".md-search-result__link").first().getAttribute("href");
        seen[language].search = new URL(link, page.url()).href.replace(start, "").replace(/[?#].*/, "");
    }
    await search("进程组");
    seen.words = await page.locator(".md-search-result__link").count();
    await shoot("search-zh-cn");
    await page.goto(`${root}rules/rs201.html`);
    await shoot("rule-en");
    await page.locator(".md-header__language").click();
    await page.waitForURL(/zh-cn/);
    seen.switched = page.url().replace(root, "");
    console.log(JSON.stringify(seen));
} finally {
    await context.close();
    rmSync(home, { recursive: true, force: true });
}
