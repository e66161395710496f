// The first ten kinds of mistakes, each with what it needs in another file: squiggle, hover, fix.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { codeServer, everyday, folder, longTest, workbench } from "../session.mjs";

const pitfalls = JSON.parse(readFileSync(new URL("../../everyday.json", import.meta.url), "utf8"));

describe("everyday mistakes", () => {
    before(() => workbench.goto(codeServer.address(everyday, join(everyday, "train.py"))));
    after(() => workbench.goto(codeServer.address(folder, join(folder, "auto_device_map.py"))));

    for (const [index, { code, file, text, fix }] of pitfalls.entries()) {
        (index === 0 ? test : longTest)(`${code} in ${file}`, async () => {
            await workbench.open(file);
            await workbench.problem(new RegExp(code));
            const hovered = await workbench.hoverSquiggle(await workbench.squiggle("warning", text));
            assert.match(hovered, new RegExp(code));
            await workbench.screenshot(`everyday-${code}`);
            const titles = await workbench.actionsOfSquiggle(await workbench.squiggle("warning", text));
            assert.ok(titles.some((title) => title.includes(code)), titles.join(" | "));
            const fixes = titles.filter((title) => !/^(Quick Fix|Ignore|Open the page|Prove)/.test(title));
            assert.equal(fixes.some((title) => title.includes(fix ?? "")), fix !== null, titles.join(" | "));
        });
    }
});
