// Shows the rules, or the messages, that fit what is chosen and typed. The page may be a file: nothing is loaded.
(() => {
    const form = document.querySelector("form.filter");
    if (!form) {
        return;
    }
    const article = form.parentElement;
    const items = [...article.querySelectorAll("[data-filtered]")];
    const FEWEST_LETTERS = 6;

    const plain = (text) => text.toLowerCase().replace(/\s+/g, " ").trim();
    // Of a message, the parts between what varies; website/readable.py tells the same of it.
    const parts = (message) => plain(message).split("…").map((part) => part.trim()).filter(Boolean);
    const known = items.map((item) => ({
        item,
        text: plain(item.textContent),
        messages: [...item.querySelectorAll(".wording")]
            .map((code) => ({ code, fixed: parts(code.textContent) }))
            .filter(({ fixed }) => fixed.join("").replace(/\P{L}/gu, "").length >= FEWEST_LETTERS),
    }));

    function stands(fixed, text) {
        let place = 0;
        for (const part of fixed) {
            const at = text.indexOf(part, place);
            if (at < 0) {
                return false;
            }
            place = at + part.length;
        }
        return true;
    }

    function mark(messages, typed) {
        for (const { code, fixed } of messages) {
            const isFound = stands(fixed, typed);
            code.classList.toggle("found", isFound);
            if (isFound && code.closest("details")) {
                code.closest("details").open = true;
            }
        }
        return messages.some(({ code }) => code.classList.contains("found"));
    }

    function fits({ item, text, messages }, chosen, typed) {
        const hasMessage = mark(messages, typed);
        const hasWords = typed.split(" ").every((word) => text.includes(word));
        return (hasMessage || hasWords) && chosen.every(([name, value]) => item.dataset[name] === value);
    }

    function apply() {
        const values = [...new FormData(form)].filter(([, value]) => value);
        const typed = plain(String(new FormData(form).get("text")));
        const chosen = values.filter(([name]) => name !== "text");
        let shown = 0;
        for (const each of known) {
            const isShown = fits(each, chosen, typed);
            each.item.hidden = !isShown;
            shown += Number(isShown);
        }
        form.elements.count.value = `${shown} / ${items.length}`;
        article.querySelector(".filter-none").hidden = shown > 0;
        hideEmptyParts(values.length > 0);
    }

    // A heading goes with what stands under it, if nothing of that is left.
    function hideEmptyParts(isFiltered) {
        for (const heading of article.querySelectorAll("h2")) {
            const part = [heading];
            for (let next = heading.nextElementSibling; next && next.tagName !== "H2"; next = next.nextElementSibling) {
                part.push(next);
            }
            const left = part.some((each) => each.matches("[data-filtered]:not([hidden])") || each.querySelector("[data-filtered]:not([hidden])"));
            for (const each of part.filter((one) => !one.matches("[data-filtered]"))) {
                each.hidden = isFiltered && !left;
            }
        }
    }

    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    apply();
})();
