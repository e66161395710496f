/**
 * Runs in the page: what each squiggle in view underlines, read from the geometry on the screen, as a user's eye does.
 * Self-contained, for it is sent to the browser as text.
 */
export function squigglesOnPage() {
    const severities = { "squiggly-error": "error", "squiggly-warning": "warning", "squiggly-info": "information", "squiggly-hint": "hint" };
    const found = [];
    for (const editor of document.querySelectorAll(".monaco-editor")) {
        const lines = [...editor.querySelectorAll(".view-lines .view-line")].map((node) => ({ node, box: node.getBoundingClientRect() }));
        const numbers = [...editor.querySelectorAll(".margin-view-overlays .line-numbers")].map((node) => ({ number: Number(node.textContent), box: node.getBoundingClientRect() }));
        for (const [name, severity] of Object.entries(severities)) {
            for (const squiggle of editor.querySelectorAll(`.${name}`)) {
                const box = squiggle.getBoundingClientRect();
                const middle = (box.top + box.bottom) / 2;
                const isBeside = (other) => other.top <= middle && middle <= other.bottom;
                const line = lines.find((candidate) => isBeside(candidate.box));
                if (!line || box.width === 0) {
                    continue;
                }
                let text = "";
                const walker = document.createTreeWalker(line.node, NodeFilter.SHOW_TEXT);
                for (let node = walker.nextNode(); node; node = walker.nextNode()) {
                    for (let index = 0; index < node.data.length; index++) {
                        const range = document.createRange();
                        range.setStart(node, index);
                        range.setEnd(node, index + 1);
                        const character = range.getBoundingClientRect();
                        const centre = (character.left + character.right) / 2;
                        if (box.left <= centre && centre <= box.right) {
                            text += node.data[index];
                        }
                    }
                }
                found.push({ severity, line: numbers.find((candidate) => isBeside(candidate.box))?.number, text: text.replaceAll("\u00a0", " "), x: (box.left + box.right) / 2, y: middle });
            }
        }
    }
    return found;
}
