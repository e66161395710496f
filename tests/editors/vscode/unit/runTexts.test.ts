import assert from "node:assert/strict";
import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { test } from "node:test";

import { HEAD_BYTES, linesSince, PART_BYTES, ranksLines } from "../../../../client/src/liveLog";
import { firstSentences, shortened } from "../../../../client/src/shortened";

test("the lines of ranks, without those of the launcher", () => {
    const log = "[launcher] W1101 torchrun\n[rank 0] step 1\r\n[rank 12]   indented\n[rank 1] \nno rank\n";
    assert.deepEqual(ranksLines(log), [
        { rank: 0, text: "step 1" },
        { rank: 12, text: "  indented" },
        { rank: 1, text: "" },
    ]);
});

test("a growing log is read on from where it was read to, by whole lines", async () => {
    const folder = await mkdtemp(path.join(tmpdir(), "ranksafe-log-"));
    const file = path.join(folder, "log.txt");
    try {
        assert.deepEqual(await linesSince(folder, 0), { lines: [], end: 0 });
        await writeFile(file, "[rank 0] 训练\n[rank 1] half of a l");
        const first = await linesSince(folder, 0);
        assert.deepEqual(first.lines, [{ rank: 0, text: "训练" }]);
        await appendFile(file, "ine\n");
        const second = await linesSince(folder, first.end);
        assert.deepEqual(second.lines, [{ rank: 1, text: "half of a line" }]);
        assert.deepEqual((await linesSince(folder, second.end)).lines, []);
    } finally {
        await rm(folder, { recursive: true });
    }
});

test("a long log is read on in its newest part, whose beginning the server and the client count alike", async () => {
    const server = await readFile(path.join(process.cwd(), "server/ranksafe/runs/kept_output.py"), "utf8");
    assert.ok(server.includes(`\nHEAD_BYTES = ${HEAD_BYTES / PART_BYTES} * 2**20\nPART_BYTES = 2**20\n`));
    assert.equal(PART_BYTES, 2 ** 20);
    const folder = await mkdtemp(path.join(tmpdir(), "ranksafe-log-"));
    try {
        await writeFile(path.join(folder, "log.txt"), "[rank 0] first\n");
        await writeFile(path.join(folder, "log.txt.2"), "[rank 0] known\n[rank 0] new\n");
        const known = HEAD_BYTES + PART_BYTES + "[rank 0] known\n".length;
        const read = await linesSince(folder, known);
        assert.deepEqual(read.lines, [{ rank: 0, text: "new" }]);
        assert.equal(read.end, known + "[rank 0] new\n".length);
    } finally {
        await rm(folder, { recursive: true });
    }
});

test("an error in one line", () => {
    assert.equal(shortened("ValueError: bad batch\nmore of it"), "ValueError: bad batch");
    const native = "RuntimeError: connection closed Exception raised from recvBytes at ../torch/csrc/x.hpp:682 (most recent call first):\nframe #0";
    assert.equal(shortened(native), "RuntimeError: connection closed");
    const long = shortened(`RuntimeError: ${"word ".repeat(100)}`);
    assert.ok(long.length <= 162 && long.endsWith("word …"), long);
});

test("as many whole sentences as there is room for", () => {
    assert.equal(firstSentences("One. Two of torch 2.13.0 here. Three."), "One. Two of torch 2.13.0 here. Three.");
    const long = `First sentence. ${"and so on ".repeat(25)}. Last.`;
    assert.equal(firstSentences(long), "First sentence.");
    assert.equal(firstSentences(`${"没有人停得下来".repeat(20)}。最后一句。`), `${"没有人停得下来".repeat(20)}。最后一句。`);
    assert.equal(firstSentences(`${"没有人停得下来".repeat(31)}。${"后".repeat(30)}。`), `${"没有人停得下来".repeat(31)}。`);
    assert.equal(firstSentences("no end"), "no end");
    assert.equal(firstSentences(""), "");
});
