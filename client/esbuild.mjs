// Builds the extension into dist/extension.js, with the licences of what is bundled in it beside it; with --tests, the unit
// tests of its pure modules into build/client-tests/.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import * as esbuild from "esbuild";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const flags = new Set(process.argv.slice(2));

/** @type {esbuild.BuildOptions} */
const common = {
    absWorkingDir: root,
    bundle: true,
    platform: "node",
    // The oldest editor of `engines.vscode` runs extensions on Node 20.
    target: "node20",
    format: "cjs",
    logLevel: "warning",
};

/** The licences of the packages that inputs of a build are from. */
function licencesOf(inputs) {
    const packages = inputs.flatMap((input) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input) ?? []);
    return [...new Set(packages)].sort().map((folder) => {
        const { name, version } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));
        const file = readdirSync(join(root, folder)).find((each) => /^licen[cs]e/i.test(each));
        if (file === undefined) {
            throw new Error(`${name} has no licence that could be handed on`);
        }
        return `${name} ${version}\n\n${readFileSync(join(root, folder, file), "utf8").trim()}\n`;
    });
}

if (flags.has("--tests")) {
    const tests = "tests/editors/vscode/unit";
    rmSync(join(root, "build/client-tests"), { recursive: true, force: true });
    await esbuild.build({
        ...common,
        entryPoints: readdirSync(join(root, tests)).map((name) => join(tests, name)),
        outdir: "build/client-tests",
        sourcemap: "inline",
    });
} else {
    /** @type {esbuild.BuildOptions} */
    const extension = {
        ...common,
        entryPoints: ["client/src/extension.ts"],
        outfile: "dist/extension.js",
        external: ["vscode"],
        minify: flags.has("--production"),
        sourcemap: !flags.has("--production"),
        metafile: true,
    };
    if (flags.has("--watch")) {
        const context = await esbuild.context(extension);
        await context.watch();
    } else {
        const { metafile } = await esbuild.build(extension);
        writeFileSync(join(root, `${extension.outfile}.LICENSES.txt`), licencesOf(Object.keys(metafile.inputs)).join("\n"));
    }
}
