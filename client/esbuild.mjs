// Builds the extension into dist/extension.js; with --tests, the unit tests of its pure modules into build/client-tests/.
import { readdirSync, rmSync } from "node:fs";
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
    };
    if (flags.has("--watch")) {
        const context = await esbuild.context(extension);
        await context.watch();
    } else {
        await esbuild.build(extension);
    }
}
