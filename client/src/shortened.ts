const LONGEST = 160;
/** Where PyTorch's message ends and its own call stack begins (c10::Error, PyTorch 2.x). */
const NATIVE_STACK = /\s*(?:Exception raised from|C\+\+ CapturedTraceback)\b.*$/s;

const LONGEST_MEANING = 220;
const SENTENCE = /[^]+?(?:\.(?=\s|$)|。|$)\s*/g;

/** Whole sentences from the beginning of a text, as many as a notification has room for, one at least. */
export function firstSentences(text: string): string {
    let kept = "";
    for (const [sentence] of text.matchAll(SENTENCE)) {
        if (kept && kept.length + sentence.length > LONGEST_MEANING) {
            break;
        }
        kept += sentence;
    }
    return kept.trimEnd();
}

/** The first line of an error, without the native frames that PyTorch adds, and cut at a word where it is long. */
export function shortened(message: string): string {
    const line = message.replace(NATIVE_STACK, "").trim().split("\n", 1)[0] ?? "";
    return line.length <= LONGEST ? line : `${line.slice(0, LONGEST).replace(/\s+\S*$/, "")} …`;
}
