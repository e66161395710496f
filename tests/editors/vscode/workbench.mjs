// The workbench as a user sees it: what is on the page, and the clicks and keys that change it.
import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { chromium } from "playwright-core";

import { ProblemsView } from "./problemsView.mjs";
import { squigglesOnPage } from "./squiggles.mjs";
import { comes, happens, MOMENT, plain, TIMEOUT, until } from "./waiting.mjs";

/** Beside the line, or in the margin where the line leaves no room. */
const LIGHT_BULB = '.editor-instance .lightBulbWidget, .editor-instance [class*="codicon-gutter-lightbulb"]';

export class Workbench {
    constructor(page, screenshots) {
        this.page = page;
        this.screenshots = screenshots;
        this.problemsView = new ProblemsView(page);
    }

    static async launch({ executable, home, screenshots }) {
        mkdirSync(screenshots, { recursive: true });
        const context = await chromium.launchPersistentContext(join(home, "chromium"), {
            executablePath: executable,
            headless: true,
            reducedMotion: "reduce",
            viewport: { width: 1280, height: 800 },
            env: { ...process.env, HOME: home },
            args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
        });
        const page = context.pages()[0] ?? (await context.newPage());
        page.setDefaultTimeout(TIMEOUT);
        await context.grantPermissions(["clipboard-read", "clipboard-write"]);
        return new Workbench(page, screenshots);
    }

    async close() {
        await this.page.context().close();
    }

    async goto(address) {
        await this.page.goto(address, { waitUntil: "domcontentloaded" });
        await this.page.locator(".monaco-workbench").waitFor();
    }

    screenshot(name, options = {}) {
        return this.page.screenshot({ path: join(this.screenshots, `${name}.png`), ...options });
    }

    /** The words on the page that say where things stand. */
    async inView() {
        const places = { tab: ".tab.active", lenses: ".codelens-decoration a", told: ".notification-list-item-message, .monaco-dialog-box", output: ".xterm-rows > div" };
        const read = Object.entries(places).map(async ([name, place]) => {
            const texts = await this.page.locator(place).filter({ visible: true }).allInnerTexts();
            return [name, texts.map(plain).filter(Boolean)];
        });
        return JSON.stringify(Object.fromEntries(await Promise.all(read)));
    }

    until(what, read, timeout = TIMEOUT) {
        return until(what, read, timeout);
    }

    /** What the language status of the active file says. */
    async languageStatus() {
        await this.page.locator('.statusbar-item[id="status.languageStatus"]').hover();
        const details = this.page.locator(".monaco-hover:not(.hidden) .hover-language-status", { hasText: "ranksafe" });
        await details.first().waitFor();
        return (await details.allInnerTexts()).map((text) => plain(text).replace(/\s+/g, " ")).join("\n");
    }

    async trustWorkspace() {
        await this.command("Workspaces: Manage Workspace Trust");
        await this.page.locator(".workspace-trust-editor .monaco-button", { hasText: /^Trust$/ }).first().click();
    }

    // Files

    tab(name) {
        return this.page.locator(`.tab.active[data-resource-name="${name}"]`);
    }

    /** The tab of a file, in front or not. */
    tabOf(name) {
        return this.page.locator(`.tab[data-resource-name="${name}"]`);
    }

    async open(name) {
        await this.quickInput("Control+P", name, name);
        await this.tab(name).waitFor();
        await this.page.locator(".editor-instance .view-line, .notebook-editor .view-line").first().waitFor();
    }

    /**
     * Opens a file and goes on to the Problems view, which is open, as fast as keys can. Back and forth: each time the
     * editor loses the focus, VS Code drops the request for lenses that it has put off.
     */
    async openInPassing(name) {
        await this.quickInput("Control+P", name, name);
        for (let turn = 0; turn < 10; turn += 1) {
            await this.page.keyboard.press("Control+1");
            await this.page.keyboard.press("Control+Shift+M");
        }
        await this.tab(name).waitFor();
    }

    /**
     * Opens the quick input by a key, types, and takes the entry that holds `label`. Once more where it went away: whatever
     * takes the focus closes it, and one that is opened while the window starts may stay empty.
     */
    quickInput(key, typed, label) {
        return this.choose(() => this.page.keyboard.press(key), typed, label);
    }

    /** The same in the quick input that a command opens. `look` is called while the chosen entry is in view. */
    pick(command, typed, label, look) {
        return this.choose(() => this.command(command), typed, label, look);
    }

    async choose(open, typed, label, look = async () => {}) {
        const entry = this.quickEntry(label);
        await this.until(`${label} in the quick input`, async () => {
            await open();
            if ((await happens(this.fillQuickInput(typed))) && (await comes(entry))) {
                await look(entry);
                if (await happens(this.take(entry))) {
                    return true;
                }
            }
            await this.page.keyboard.press("Escape");
            return false;
        });
    }

    /** Not by keys: when something else takes the focus in between, they would reach the editor's text. */
    async fillQuickInput(typed) {
        const write = (input, text) => {
            input.value = text;
            input.dispatchEvent(new Event("input", { bubbles: true }));
        };
        const box = this.quickInputBox().filter({ visible: true });
        await box.evaluate(write, typed, { timeout: MOMENT });
    }

    quickInputBox() {
        return this.page.locator(".quick-input-widget input");
    }

    /** The chosen entry, if it holds `label`. */
    quickEntry(label) {
        return this.page.locator(".quick-input-list .monaco-list-row.focused", { hasText: label });
    }

    /** By the mouse, for the same reason. */
    async take(entry) {
        await entry.click({ timeout: MOMENT });
        // The input closes, or asks the next question.
        await entry.waitFor({ state: "hidden" });
    }

    async save() {
        await this.page.keyboard.press("Control+S");
        await this.page.locator(".tab.active.dirty").waitFor({ state: "detached" });
    }

    // Commands and dialogs

    async command(title) {
        await this.quickInput("F1", `>${title}`, title);
    }

    /** Sets a user setting where a user does: in the settings file, open in the editor. */
    async setUserSettings(settings) {
        await this.command("Preferences: Open User Settings (JSON)");
        await this.tab("settings.json").waitFor();
        await this.focusEditor();
        await this.page.keyboard.press("Control+A");
        // Pasted, not typed: the editor closes brackets that are typed.
        await this.page.evaluate((text) => navigator.clipboard.writeText(text), JSON.stringify(settings, undefined, 4));
        await this.page.keyboard.press("Control+V");
        await this.page.locator(".tab.active.dirty").waitFor();
        await this.save();
    }

    async clickDialog(button) {
        await this.page.locator(".monaco-dialog-box .monaco-button", { hasText: new RegExp(`^${button}$`) }).click();
    }

    dialog() {
        return this.page.locator(".monaco-dialog-box");
    }

    async notification(text, timeout = TIMEOUT) {
        // While the list of notifications is open, a new one appears there only.
        const places = [".notifications-toasts", ".notifications-center"].map((place) => `${place} .notification-list-item-message`);
        const message = this.page.locator(places.join(", "), { hasText: text }).filter({ visible: true });
        await message.first().waitFor({ timeout });
        return plain(await message.first().innerText());
    }

    /** A button of a notification that is open. */
    notificationButton(text, button) {
        const item = this.page.locator(".notifications-toasts .notification-list-item, .notifications-center .notification-list-item", { hasText: text });
        return item.locator(".monaco-button", { hasText: new RegExp(`^${button}$`) }).filter({ visible: true }).first();
    }

    /** Waits until the output of the run that is shown below the editors has that text; as it is drawn, line by line. */
    testOutput(pattern, timeout = TIMEOUT) {
        const rows = this.page.locator(".test-output-peek .xterm-rows, .test-output-call-stack-container .xterm-rows");
        return this.until(`output ${pattern}`, async () => pattern.test(plain((await rows.allInnerTexts()).join("\n"))), timeout);
    }

    /** Waits until the terminal in view has that text. */
    terminalText(pattern, timeout = TIMEOUT) {
        const rows = this.page.locator(".terminal-wrapper.active .xterm-rows");
        return this.until(`terminal ${pattern}`, async () => pattern.test(plain((await rows.allInnerTexts()).join("\n"))), timeout);
    }

    /** How the last run went, in the margin of the editor beside the script's entry. */
    tick(outcome) {
        return this.page.locator(`.editor-instance .codicon-testing-${outcome}-icon`).first();
    }

    /** A button at the top right of the editors. */
    titleAction(name) {
        return this.page.locator(`.editor-actions .action-label[aria-label^="${name}"], .editor-actions .action-label[aria-label*="ranksafe: ${name}"]`).first();
    }

    /** Cancels work that is shown in the status bar: its notification opens with a click. */
    async cancelProgress(text) {
        await this.page.locator(".statusbar-item", { hasText: text }).click();
        const item = this.page.locator(".notifications-center .notification-list-item, .notifications-toasts .notification-list-item", { hasText: text });
        await item.first().hover();
        await item.locator(".monaco-button", { hasText: "Cancel" }).first().click();
    }

    // The editor

    async editorText() {
        const lines = await this.page.locator(".editor-instance .view-line").evaluateAll((nodes) =>
            nodes.map((node) => ({ top: node.getBoundingClientRect().top, text: node.textContent })).sort((a, b) => a.top - b.top),
        );
        return lines.map(({ text }) => text.replaceAll("\u00a0", " ")).join("\n");
    }

    async focusEditor() {
        await this.page.locator(".editor-instance .view-line").first().click();
    }

    async typeAtEnd(text) {
        await this.focusEditor();
        await this.page.keyboard.press("Control+End");
        await this.page.keyboard.type(text);
    }

    /** Every squiggle in view: {severity, line, text}, where text is what it underlines. */
    squiggles() {
        return this.page.evaluate(squigglesOnPage);
    }

    /** Waits for a squiggle of that severity below exactly that text. */
    async squiggle(severity, text) {
        let seen = [];
        try {
            return await this.until("a squiggle", async () => {
                seen = await this.squiggles();
                return seen.find((squiggle) => squiggle.severity === severity && squiggle.text === text);
            });
        } catch (error) {
            throw new Error(`no ${severity} squiggle below ${JSON.stringify(text)}; there are ${JSON.stringify(seen)}`, { cause: error });
        }
    }

    /** The innermost span that holds `text`. */
    token(text) {
        return this.page.locator(".view-line span:not(:has(span))", { hasText: text }).first();
    }

    async hover(text) {
        await this.page.mouse.move(5, 5);
        await this.token(text).hover();
        return this.hoverText();
    }

    /** What is shown when the mouse rests on a squiggle. */
    async hoverSquiggle({ x, y }) {
        await this.page.mouse.move(5, 5);
        await this.page.mouse.move(x, y);
        return this.hoverText();
    }

    async hoverText() {
        const content = this.page.locator(".monaco-hover:not(.hidden) .monaco-hover-content", { hasText: /ranksafe|RS\d{3}/ });
        await content.first().waitFor();
        return plain(await content.first().innerText());
    }

    // Fixes

    /**
     * Puts the cursor there and waits for the light bulb. VS Code asks for actions 250 ms after each move of the cursor, and
     * this forgets what was asked for in between (1.139.1, `CodeActionOracle`): neither the list nor Fix All would come.
     */
    lightBulb(text) {
        return this.lightBulbAfter(text, () => this.token(text).click());
    }

    async lightBulbAfter(what, click) {
        const bulb = this.page.locator(LIGHT_BULB).filter({ visible: true }).first();
        await this.until(`the light bulb of ${what}`, async () => {
            // A lens that comes in the same instant moves the line away from under the mouse.
            await click();
            // A hover that comes up under the mouse closes the list of actions.
            await this.page.mouse.move(5, 5);
            return comes(bulb);
        });
    }

    async openActions(text) {
        await this.lightBulb(text);
        await this.actionList();
    }

    /** The titles that the light bulb of a squiggle offers. */
    async actionsOfSquiggle({ text, x, y }) {
        await this.lightBulbAfter(text, () => this.page.mouse.click(x, y));
        await this.actionList();
        const titles = await this.actions();
        await this.page.keyboard.press("Escape");
        return titles;
    }

    async actionList() {
        await this.until("the list of actions", async () => {
            await this.page.keyboard.press("Control+.");
            return comes(this.page.locator(".action-widget .monaco-list-row").first());
        });
    }

    async actions() {
        return (await this.page.locator(".action-widget .monaco-list-row").allInnerTexts()).map(plain);
    }

    async chooseAction(title) {
        await this.page.locator(".action-widget .monaco-list-row", { hasText: title }).first().click();
    }

    /** Waits for an element of a rendered page, in whichever frame the editor shows it. */
    rendered(element, text) {
        return this.until(`${element} ${text}`, async () => {
            const counts = this.page.frames().map((frame) => frame.locator(element, { hasText: text }).count().catch(() => 0));
            return (await Promise.all(counts)).some((count) => count > 0);
        });
    }

    // Lenses

    lens(title) {
        return this.page.locator(".codelens-decoration a", { hasText: title });
    }

    async lenses() {
        return (await this.page.locator(".codelens-decoration a").allInnerTexts()).map(plain);
    }

    // Problems

    /** The rows of the Problems view, as text. */
    problems() {
        return this.problemsView.rows();
    }

    /** Waits for a row of the Problems view that matches. */
    async problem(pattern) {
        await this.problemsView.open();
        return this.until(`a problem like ${pattern}`, async () => (await this.problems()).find((row) => pattern.test(row)));
    }
}
