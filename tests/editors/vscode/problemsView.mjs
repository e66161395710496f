// The Problems view: a list that holds only the rows in view, and is scrolled to see the others.
import { comes, plain, until } from "./waiting.mjs";

const LIST = ".markers-panel .monaco-list";

/** Runs in the page: the rows that are wholly in view, and how far down the list they reach, in pixels. */
function rowsInView(selector) {
    const list = document.querySelector(selector);
    const all = list?.querySelector(".monaco-list-rows");
    if (!all) {
        return undefined;
    }
    const top = -Number.parseFloat(all.style.top || "0");
    const height = list.clientHeight;
    const rows = [...all.children].filter((row) => top <= row.offsetTop && row.offsetTop + row.offsetHeight <= top + height);
    return {
        top,
        height,
        bottom: Math.max(top, ...rows.map((row) => row.offsetTop + row.offsetHeight)),
        isEnd: all.offsetHeight <= top + height,
        rows: rows.map((row) => ({ index: Number(row.dataset.index), text: row.innerText })),
    };
}

export class ProblemsView {
    constructor(page) {
        this.page = page;
    }

    async open() {
        const panel = this.page.locator(".markers-panel");
        await until("the Problems view", async () => {
            if (await panel.isVisible()) {
                return true;
            }
            await this.page.keyboard.press("Control+Shift+M");
            return comes(panel);
        });
    }

    /** All rows, as text. */
    async rows() {
        const seen = new Map();
        await this.#scrollThrough((rows) => {
            for (const { index, text } of rows) {
                seen.set(index, plain(text).replace(/\s+/g, " "));
            }
        });
        return [...seen].sort(([one], [other]) => one - other).map(([, text]) => text);
    }

    /** The row that holds `text`, scrolled into view. */
    async row(text) {
        const row = this.page.locator(`${LIST}-row`, { hasText: text }).first();
        await until(`a problem with ${text}`, async () => {
            let isInView = false;
            await this.#scrollThrough((rows) => (isInView = rows.some((one) => plain(one.text).includes(text))));
            return isInView;
        });
        return row;
    }

    /** Shows the related places of a problem. */
    async expand(text) {
        const row = await this.row(text);
        await row.click();
        if ((await row.getAttribute("aria-expanded")) !== "true") {
            await this.page.keyboard.press("ArrowRight");
        }
        await this.page.locator(`${LIST}-row[aria-expanded="true"]`, { hasText: text }).first().waitFor();
    }

    /** Calls `see` with the rows in view, from the first on without a gap, until it returns true or the last were seen. */
    async #scrollThrough(see) {
        let seenTo = 0;
        await until("the end of the Problems view", async () => {
            const view = await this.page.evaluate(rowsInView, LIST);
            const isGap = view?.top > seenTo;
            if (!view || (!isGap && (see(view.rows) || view.isEnd))) {
                return true;
            }
            seenTo = isGap ? seenTo : view.bottom;
            await this.page.locator(LIST).hover();
            await this.page.mouse.wheel(0, isGap ? -view.height : view.height / 2);
            return false;
        });
    }
}
