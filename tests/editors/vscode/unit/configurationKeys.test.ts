import assert from "node:assert/strict";
import { test } from "node:test";

import { proposals } from "../../../../client/src/configurationKeys";

const labels = (before: string, isPyproject = false): string[] => proposals(before, isPyproject).map(({ label }) => label);

test("the keys that are not there yet, with what each means", () => {
    const found = proposals('select = ["RS2"]\n', false);
    assert.deepEqual(found.map(({ label }) => label), ["ignore", "preview", "gpus", "launcher", "assume", "per-file-ignores", "exclude"]);
    assert.equal(found[0]?.insert, "ignore = []");
    assert.ok(found.every(({ description }) => description));
});

test("in pyproject.toml only in the table of ranksafe", () => {
    assert.deepEqual(labels("", true), []);
    assert.deepEqual(labels("[project]\n", true), []);
    assert.deepEqual(labels("[tool.ruff]\nselect = [", true), []);
    assert.ok(labels("[project]\nname = 'x'\n\n[tool.ranksafe]\nsel", true).includes("select"));
    assert.deepEqual(labels("[tool.ranksafe]\n\n[tool.ruff]\n", true), []);
});

test("the values of a key", () => {
    assert.deepEqual(labels("launcher = "), ['"python"', '"accelerate"', '"torchrun"']);
    assert.deepEqual(labels('launcher = "'), ["python", "accelerate", "torchrun"]);
    assert.deepEqual(labels("preview = "), ["true", "false"]);
    assert.deepEqual(labels("gpus = "), []);
    assert.deepEqual(labels('exclude = ["'), []);
});

test("rules by code and name, also over several lines and for patterns of files", () => {
    for (const before of ['ignore = ["', 'ignore = [\n  "RS301",\n  "', 'per-file-ignores = { "tests/*" = ["', '[per-file-ignores]\n"tests/*" = ["']) {
        assert.ok(labels(before).includes("RS201"), before);
        assert.ok(labels(before).includes("implicit-data-parallel"), before);
    }
    assert.ok(labels('[tool.ranksafe.per-file-ignores]\n"a/*" = ["', true).includes("ALL"));
});

test("nothing in a comment", () => assert.deepEqual(labels("# a word "), []));
