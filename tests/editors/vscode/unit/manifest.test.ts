import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { languageOf, t, useLanguage } from "../../../../client/src/localize";

// npm runs scripts in the folder of package.json.
const root = process.cwd();
const read = (path: string): string => readFileSync(join(root, path), "utf8");

interface Manifest {
    contributes: {
        configuration: { properties: Record<string, { scope: string }> };
        commands: { command: string }[];
        walkthroughs: { steps: { media: { markdown: string } }[] }[];
    };
    capabilities: { untrustedWorkspaces: { supported: string; restrictedConfigurations: string[] } };
    extensionKind: string[];
}
const manifest = JSON.parse(read("package.json")) as Manifest;
const keys = (path: string): string[] => Object.keys(JSON.parse(read(path)) as object).sort();

test("the manifest's texts exist in both languages, and no others", () => {
    const used = [...new Set([...read("package.json").matchAll(/"%([\w.]+)%"/g)].map((match) => match[1] ?? ""))].sort();
    assert.deepEqual(keys("package.nls.json"), used);
    assert.deepEqual(keys("package.nls.zh-cn.json"), used);
});

test("every message of the client has its Chinese, and there are no others", () => {
    const sources = readdirSync(join(root, "client/src")).map((name) => read(`client/src/${name}`)).join("\n");
    const used = [...sources.matchAll(/\bt\(\s*"((?:[^"\\]|\\.)*)"/g)].map((match) => JSON.parse(`"${match[1]}"`) as string);
    assert.deepEqual(keys("l10n/bundle.l10n.zh-cn.json"), [...new Set(used)].sort());
});

test("a translation keeps the placeholders", () => {
    for (const [english, chinese] of Object.entries(JSON.parse(read("l10n/bundle.l10n.zh-cn.json")) as Record<string, string>)) {
        const placeholders = (text: string): string[] => (text.match(/\{\d+\}/g) ?? []).sort();
        assert.deepEqual(placeholders(chinese), placeholders(english), english);
    }
});

test("t fills placeholders in the chosen language", () => {
    useLanguage("zh-cn");
    assert.equal(t("Folder: {0}", "/a"), "文件夹：/a");
    useLanguage("en");
    assert.equal(t("Folder: {0}", "/a"), "Folder: /a");
    assert.equal(languageOf("zh-TW"), "zh-cn");
    assert.equal(languageOf("de"), "en");
});

test("few settings, and what reaches a process belongs to the user", () => {
    const properties = manifest.contributes.configuration.properties;
    assert.ok(Object.keys(properties).length < 20);
    const startsProcesses = ["serverInterpreter", "interpreter", "runEnvironment", "sshConfigFile", "rehearseOnSave"];
    for (const name of startsProcesses) {
        assert.equal(properties[`ranksafe.${name}`]?.scope, "machine", name);
    }
    assert.equal(manifest.capabilities.untrustedWorkspaces.supported, "limited");
    for (const name of [...startsProcesses, "importStrategy"]) {
        assert.ok(manifest.capabilities.untrustedWorkspaces.restrictedConfigurations.includes(`ranksafe.${name}`), name);
    }
    assert.deepEqual(manifest.extensionKind, ["workspace"]);
});

test("every page of the walkthrough exists in both languages", () => {
    for (const step of manifest.contributes.walkthroughs.flatMap((walkthrough) => walkthrough.steps)) {
        assert.ok(existsSync(join(root, step.media.markdown)), step.media.markdown);
        assert.ok(existsSync(join(root, step.media.markdown.replace(/\.md$/, ".nls.zh-cn.md"))), step.media.markdown);
    }
});

test("the bundle pins what the Python package needs", () => {
    const normal = (name: string): string => name.toLowerCase().replaceAll("_", "-");
    const pinned = new Set(read("client/bundle/requirements.txt").split("\n").flatMap((line) => (line.includes("==") ? [normal(line.split("==")[0] ?? "")] : [])));
    const listed = /^dependencies = \[([\s\S]*?)^\]/m.exec(read("pyproject.toml"))?.[1] ?? "";
    const needed = [...listed.matchAll(/"([A-Za-z0-9_.-]+)/g)].map((match) => normal(match[1] ?? ""));
    assert.ok(needed.length > 0);
    for (const name of needed) {
        assert.ok(pinned.has(name), `${name} is not in client/bundle/requirements.txt`);
    }
});
