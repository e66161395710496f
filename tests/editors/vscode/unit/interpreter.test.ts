import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, win32 } from "node:path";
import { after, test } from "node:test";

import { candidates, findInterpreter, isSupported, NoInterpreter } from "../../../../client/src/interpreter";
import { planLaunch, type LaunchChoices } from "../../../../client/src/launch";
import { isInside, searchPath } from "../../../../client/src/paths";
import { isOlder } from "../../../../client/src/versions";

const folder = mkdtempSync(join(tmpdir(), "ranksafe-interpreter-"));
const workspace = join(folder, "workspace");
const outside = join(folder, "outside");
after(() => rmSync(folder, { recursive: true, force: true }));

const python = execFileSync("python3", ["-c", "import sys; print(sys.executable)"], { encoding: "utf8" }).trim();

function script(path: string, content: string): string {
    mkdirSync(join(path, ".."), { recursive: true });
    writeFileSync(path, content, { mode: 0o755 });
    return path;
}

const committed = script(join(workspace, ".venv/bin/python"), `#!/bin/sh\nexec ${python} "$@"\n`);
const tooOld = script(join(outside, "old/python3"), "#!/bin/sh\necho 3.9.18\n");
const good = script(join(outside, "good/python3"), `#!/bin/sh\nexec ${python} "$@"\n`);
const broken = script(join(outside, "broken/python3"), "#!/bin/sh\nexit 3\n");
const linkOut = join(workspace, "link-out");
symlinkSync(python, linkOut);
const linkIn = join(outside, "link-in");
symlinkSync(committed, linkIn);

test("a file is inside by its name, by its link's goal, or by its folder's", () => {
    assert.ok(isInside(committed, [workspace]));
    assert.ok(isInside(linkOut, [workspace]));
    assert.ok(isInside(linkIn, [workspace]));
    symlinkSync(join(workspace, ".venv"), join(outside, "venv"));
    symlinkSync(python, join(workspace, ".venv/bin/linked"));
    assert.ok(isInside(join(outside, "venv/bin/linked"), [workspace]));
    assert.ok(!isInside(good, [workspace]));
    assert.ok(!isInside(`${workspace}-other/python`, [workspace]));
    assert.ok(!isInside(join(folder, "..evil"), [join(folder, "x")]));
});

test("relative folders of PATH are not searched", () => {
    assert.deepEqual(searchPath("/usr/bin:.::bin:/bin"), ["/usr/bin", "/bin"]);
});

test("too old and broken interpreters are passed over", async () => {
    const found = await findInterpreter({ preferred: [tooOld, broken, good], forbidden: [], searchPath: "" });
    assert.equal(found.path, good);
    assert.ok(isSupported(found.version));
});

test("no interpreter of a forbidden folder is started", async () => {
    const found = await findInterpreter({ preferred: [committed, linkOut, linkIn], forbidden: [workspace], searchPath: join(outside, "good") });
    assert.equal(found.path, good);
});

test("says what was wrong with each", async () => {
    const search = { preferred: [tooOld], forbidden: ["/"], searchPath: "" };
    await assert.rejects(findInterpreter(search), (error: unknown) => error instanceof NoInterpreter && error.message.includes(tooOld));
});

const choices: LaunchChoices = {
    extensionFolder: "/extension",
    trusted: true,
    workspaceFolders: [workspace],
    strategy: "useBundled",
    serverInterpreter: undefined,
    projectInterpreter: committed,
    searchPath: join(outside, "good"),
};

test("a trusted workspace may bring the interpreter", async () => {
    const plan = await planLaunch(choices);
    assert.equal(plan.interpreter.path, committed);
    assert.deepEqual(plan.arguments, ["-I", "/extension/client/bootstrap.py"]);
});

test("an untrusted workspace may not, and its server is isolated whatever the strategy", async () => {
    for (const strategy of ["useBundled", "fromEnvironment"] as const) {
        const plan = await planLaunch({ ...choices, trusted: false, strategy, serverInterpreter: linkIn });
        assert.equal(plan.interpreter.path, good);
        assert.equal(plan.arguments[0], "-I");
        assert.equal(plan.strategy, "useBundled");
        assert.notEqual(plan.workingDirectory, workspace);
    }
});

test("the server of the environment is started without the bundled libraries", async () => {
    const plan = await planLaunch({ ...choices, strategy: "fromEnvironment" });
    assert.deepEqual(plan.arguments, ["/extension/client/bootstrap.py", "--from-environment"]);
});

test("versions are compared as numbers", () => {
    assert.ok(isOlder("1.99.3", "1.136.2"));
    assert.ok(isOlder("1.136.1-insider", "1.136.2"));
    assert.ok(!isOlder("1.136.2", "1.136.2"));
    assert.ok(!isOlder("2.0.0", "1.136.2"));
});

test("on Windows a drive is the same in either case, and another drive is elsewhere", () => {
    const inside = (file: string, folder: string) => isInside(file, [folder], win32);
    assert.ok(inside("C:\\Work\\.venv\\Scripts\\python.exe", "c:\\work"));
    assert.ok(inside("\\\\host\\share\\work\\python.exe", "\\\\host\\share\\work"));
    assert.ok(!inside("C:\\workshop\\python.exe", "C:\\work"));
    assert.ok(!inside("D:\\work\\python.exe", "C:\\work"));
});

test("on Windows interpreters are looked for in the folders of Path, on a Mac in Homebrew's, too", () => {
    const search = { preferred: [], forbidden: [], searchPath: "C:\\Python313;tools;D:\\venv\\Scripts" };
    const windows = [...candidates(search, "win32")];
    assert.deepEqual(windows.slice(0, 3), ["C:\\Python313\\python3.exe", "D:\\venv\\Scripts\\python3.exe", "C:\\Python313\\python.exe"]);
    assert.ok(windows.every((candidate) => candidate.endsWith(".exe")));
    const mac = [...candidates({ ...search, searchPath: "/Users/me/bin:relative" }, "darwin")];
    assert.deepEqual(mac.slice(0, 2), ["/Users/me/bin/python3", "/usr/local/bin/python3"]);
    assert.ok(mac.includes("/opt/homebrew/bin/python3"));
});
