/** A command line that cannot be split: a quote that is never closed, or a trailing backslash. */
export class UnfinishedQuote extends Error {}

/**
 * Splits what a user typed into a list of arguments, by the quoting rules of a POSIX shell. No variable, glob or
 * operator is expanded: the list is handed to the script as it is and never reaches a shell.
 */
export function splitArguments(text: string): string[] {
    const words: string[] = [];
    let word: string | undefined;
    let quote = "";
    for (let index = 0; index < text.length; index++) {
        const character = text.charAt(index);
        if (quote === "'") {
            if (character === "'") {
                quote = "";
            } else {
                word += character;
            }
        } else if (character === "\\") {
            const next = text[++index];
            if (next === undefined) {
                throw new UnfinishedQuote();
            }
            const keepsBackslash = quote === '"' && !'"\\$`'.includes(next);
            word = (word ?? "") + (keepsBackslash ? "\\" + next : next);
        } else if (quote === '"') {
            if (character === '"') {
                quote = "";
            } else {
                word += character;
            }
        } else if (character === "'" || character === '"') {
            quote = character;
            word ??= "";
        } else if (/\s/.test(character)) {
            if (word !== undefined) {
                words.push(word);
                word = undefined;
            }
        } else {
            word = (word ?? "") + character;
        }
    }
    if (quote) {
        throw new UnfinishedQuote();
    }
    if (word !== undefined) {
        words.push(word);
    }
    return words;
}

/** The inverse of `splitArguments`: one line that splits into the same list again. */
export function joinArguments(words: readonly string[]): string {
    return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(" ");
}
