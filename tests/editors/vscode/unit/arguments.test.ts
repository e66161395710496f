import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

import { joinArguments, splitArguments, UnfinishedQuote } from "../../../../client/src/arguments";

const TYPED = [
    "--steps 10 --name run1",
    "  spaces   between  ",
    `--prompt "two words" 'single $HOME "quoted"'`,
    `--json '{"lr": 1e-4}' back\\ slash "a\\"b" "keeps \\n"`,
    `--empty "" ''`,
    "--model=路径/模型 'emoji 🙂'",
];

/** What a POSIX shell makes of the same words, where it expands nothing. */
function shellWords(text: string): string[] {
    return execFileSync("sh", ["-c", `for word in ${text}; do printf '%s\\0' "$word"; done`], { encoding: "utf8" }).split("\0").slice(0, -1);
}

for (const text of TYPED) {
    test(`splits as a shell does: ${text}`, () => assert.deepEqual(splitArguments(text), shellWords(text)));
}

test("joined words split into the same words", () => {
    const words = ["plain", "two words", "it's", "", 'a"b', "$HOME", "back\\slash", "换行\n", "--a=b,c:d"];
    assert.deepEqual(splitArguments(joinArguments(words)), words);
});

test("expands nothing", () => {
    assert.deepEqual(splitArguments("$HOME * `id` $(id) ; rm"), ["$HOME", "*", "`id`", "$(id)", ";", "rm"]);
});

for (const text of ["'open", '"open', "ends with \\"]) {
    test(`refuses ${text}`, () => assert.throws(() => splitArguments(text), UnfinishedQuote));
}
