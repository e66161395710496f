// One code-server and one page for all journeys, so that their start-up is paid once.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { CodeServer } from "./codeServer.mjs";
import { Workbench } from "./workbench.mjs";

const here = dirname(fileURLToPath(import.meta.url));
export const torchPython = process.env.RANKSAFE_TEST_TORCH_PYTHON;
export const needsTorch = torchPython || process.env.CI === "true" ? false : "RANKSAFE_TEST_TORCH_PYTHON names no Python with torch and accelerate";
/** A run starts a launcher and imports torch twice; on a busy machine that takes a minute. */
export const RUN_MILLISECONDS = 3_000 * Number(process.env.RANKSAFE_UI_SECONDS || 60);

/** A journey that the gate leaves to its long form: most of what it shows is shown by another one. None hangs on it. */
export const longTest = process.env.RANKSAFE_JOURNEYS === "short" ? () => undefined : test;

const state = mkdtempSync(join(tmpdir(), "ranksafe-editors-"));
export const folder = join(state, "project");
export const everyday = join(state, "everyday");
export const untrusted = join(state, "downloaded");
/** Comes into being when an interpreter of the untrusted folder is started. */
export const started = join(state, "started");
export const USER_SETTINGS = {
    "security.workspace.trust.enabled": false,
    "workbench.startupEditor": "none",
    "workbench.colorTheme": "Light Modern",
    "workbench.editor.useModal": "off",
    "files.autoSave": "off",
    "editor.minimap.enabled": false,
    "editor.stickyScroll.enabled": false,
    "workbench.tree.enableStickyScroll": false,
    "chat.disableAIFeatures": true,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "telemetry.telemetryLevel": "off",
    // Screenshots show things, not things fading in.
    "workbench.reduceMotion": "on",
    "remote.autoForwardPorts": false,
    // Text that a test can read, where a canvas would show the same.
    "terminal.integrated.gpuAcceleration": "off",
};
export const MACHINE_SETTINGS = torchPython ? { "ranksafe.interpreter": torchPython } : {};

/** A PATH with one Python and nothing else, if that is asked for. */
function onePython() {
    if (!process.env.RANKSAFE_ONLY_PYTHON) {
        return undefined;
    }
    const bin = join(state, "bin");
    mkdirSync(bin);
    symlinkSync(process.env.RANKSAFE_ONLY_PYTHON, join(bin, "python3"));
    return bin;
}

/** @type {CodeServer} */ export let codeServer;
/** @type {Workbench} */ export let workbench;

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => process.exit(1));
}

before(async () => {
    cpSync(join(here, "workspace"), folder, { recursive: true });
    cpSync(join(here, "../everyday"), everyday, { recursive: true });
    mkdirSync(untrusted);
    for (const name of ["auto_device_map.py", "pyproject.toml"]) {
        cpSync(join(here, "workspace", name), join(untrusted, name));
    }
    codeServer = new CodeServer({ node: process.env.RANKSAFE_TEST_NODE, entry: process.env.RANKSAFE_TEST_CODE_SERVER, state, searchPath: onePython() });
    codeServer.writeSettings("User", USER_SETTINGS);
    codeServer.writeSettings("Machine", MACHINE_SETTINGS);
    codeServer.install(process.env.RANKSAFE_VSIX, process.env.RANKSAFE_TEST_DEBUGGER);
    codeServer.shareCompiledDevices();
    await codeServer.start();
    const home = join(state, "browser");
    mkdirSync(home);
    workbench = await Workbench.launch({ executable: process.env.RANKSAFE_CHROMIUM, home, screenshots: process.env.RANKSAFE_SCREENSHOTS });
    await workbench.goto(codeServer.address(folder, join(folder, "auto_device_map.py")));
});

after(async () => {
    await workbench?.close();
    await codeServer?.stop();
    if (!process.env.RANKSAFE_KEEP_STATE) {
        rmSync(state, { recursive: true, force: true });
    }
});

afterEach(async (context) => {
    if (context.passed === false) {
        await workbench.screenshot(`failed ${context.name}`).catch(() => undefined);
        // The reporter prints the stack, and of a run elsewhere that text may be all there is.
        const reason = context.error?.cause ?? context.error;
        const inView = await workbench.inView().catch(String);
        if (reason instanceof Error) {
            reason.stack += `\nin view: ${inView}`;
        }
        // A list or a question that it left open is not the next journey's affair.
        await workbench.page.keyboard.press("Escape");
    }
});

/** Puts a file back as it is in the fixtures, whatever a journey did to it. */
export function restore(name) {
    writeFileSync(join(folder, name), readFileSync(join(here, "workspace", name)));
}

export function onDisk(name) {
    return readFileSync(join(folder, name), "utf8");
}
