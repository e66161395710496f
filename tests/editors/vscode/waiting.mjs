// How long something may take to appear, and how it is waited for.

export const TIMEOUT = 1_000 * Number(process.env.RANKSAFE_UI_SECONDS || 60);
/** After this a user does once more what had no visible effect: a part of what is waited for, not all of it. */
export const MOMENT = TIMEOUT / 12;

/** View lines hold no-break spaces for blanks. */
export const plain = (text) => text.replaceAll("\u00a0", " ").trim();

/** Waits until `read` returns something true, and returns it. `what` names it in the failure. */
export async function until(what, read, timeout = TIMEOUT) {
    const deadline = Date.now() + timeout;
    for (;;) {
        const value = await read();
        if (value) {
            return value;
        }
        if (Date.now() > deadline) {
            throw new Error(`not seen within ${timeout / 1000} s: ${what}`);
        }
        await new Promise((resolve) => setTimeout(resolve, 100));
    }
}

/** Whether an element shows within a moment. */
export function comes(locator) {
    return happens(locator.waitFor({ timeout: MOMENT }));
}

/** Whether an action ends well. */
export function happens(action) {
    return action.then(
        () => true,
        () => false,
    );
}
