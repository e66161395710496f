import * as vscode from "vscode";
import type { ExecuteCommandSignature, Middleware } from "vscode-languageclient/node";

import { joinArguments, splitArguments, UnfinishedQuote } from "./arguments";
import { mayRun } from "./consent";
import { askRank, attach, bundledDebugpy, requireDebugger } from "./debugger";
import { startsScript } from "./entries";
import { chooseRun } from "./history";
import { askFitDevices, fitDevices, type FitDevices } from "./fit";
import { t } from "./localize";
import { runEnvironment } from "./settings";
import type { Testing } from "./testing";

/** Commands of the server that lead to a process of the user's, besides those that start one. */
const NEEDS_TRUST = new Set(["ranksafe.fit", "ranksafe.setFitDevices", "ranksafe.prove", "ranksafe.setArguments", "ranksafe.setTarget", "ranksafe.addTarget", "ranksafe.setConfigFile"]);
/** How many simulated GPUs the picker of targets offers; any number can be typed. */
const SIMULATED = [2, 4, 8] as const;
const SIMULATED_TARGET = /^simulated:[1-9]\d*$/;
const RULE_CODE = /^RS\d{3}$/;

type Arguments = unknown[] | undefined;

interface RunOptions {
    readonly target?: unknown;
    readonly gpus?: unknown;
}

/** The document a command is about: the one its caller names, else the one in the active editor. */
function documentOf(given: readonly unknown[]): vscode.Uri | undefined {
    const named = given[0];
    if (typeof named === "string") {
        return vscode.Uri.parse(named);
    }
    const active = vscode.window.activeTextEditor?.document;
    return active?.languageId === "python" ? active.uri : undefined;
}

/**
 * What the client adds to the server's commands: questions for what a caller left out, buffers saved and consent given
 * before a run. The ids are registered once, from what the server announces.
 */
export class RunCommands {
    constructor(
        private readonly context: vscode.ExtensionContext,
        private readonly projectInterpreter: () => Promise<string | undefined>,
        private readonly testing: Testing,
    ) {}

    readonly middleware: Middleware = {
        executeCommand: (command, given: unknown[], next) => this.execute(command, given, next),
    };

    private async execute(command: string, given: unknown[], next: ExecuteCommandSignature): Promise<unknown> {
        if (command === "ranksafe.trustWorkspace") {
            // In this editor trust is given in its own dialog. The server's command is for editors that have none; passed
            // on, anything that can execute a command (a link in a rendered page) could use it to trust a workspace.
            return vscode.commands.executeCommand("workbench.trust.manage");
        }
        if ((startsScript(command) || NEEDS_TRUST.has(command)) && !(await isTrusted())) {
            return undefined;
        }
        const [, options] = given as [unknown, { show?: unknown } | undefined];
        if (command === "ranksafe.showRuns" && options?.show !== false) {
            return chooseRun(next);
        }
        if (command === "ranksafe.fit") {
            return this.forecast(given, next);
        }
        if (command === "ranksafe.debugRank" && !(await requireDebugger())) {
            return undefined;
        }
        const complete = await this.complete(command, given, next);
        if (!complete || (startsScript(command) && !(await this.prepareRun(command, complete)))) {
            return undefined;
        }
        if (startsScript(command)) {
            const script = vscode.Uri.parse(String(complete[0]));
            const started = await this.testing.start(command, script, async () => (await next(command, complete)) as unknown);
            if (command === "ranksafe.debugRank") {
                await attach(script, Number(complete[1]), started);
            }
            return started;
        }
        const answer = (await next(command, complete)) as unknown;
        if (command === "ranksafe.launchCommand") {
            await copyText(answer);
        }
        if (command === "ranksafe.showStacks") {
            const chosen = await askRunGoingOn(answer);
            return chosen ? ((await next(command, [chosen])) as unknown) : answer;
        }
        return answer;
    }

    /** The full arguments of a command, asked for where they are missing; undefined when the user changed their mind. */
    private async complete(command: string, given: unknown[], next: ExecuteCommandSignature): Promise<Arguments> {
        switch (command) {
            case "ranksafe.addTarget":
            case "ranksafe.cancelRun":
            case "ranksafe.openLog":
            case "ranksafe.openReport":
            case "ranksafe.showRuns":
            case "ranksafe.showStacks":
                return given;
            case "ranksafe.annotateFromLog":
                return given.length > 0 ? given : askLog();
            case "ranksafe.openRule":
            case "ranksafe.prove":
                return given.length > 0 ? given : askRule();
        }
        const document = documentOf(given);
        if (!document) {
            tellToOpen();
            return undefined;
        }
        const uri = document.toString();
        if (command === "ranksafe.launchCommand") {
            return given.length >= 2 ? given : askLaunchForm(uri);
        }
        if (command === "ranksafe.debugRank") {
            return this.completeDebugging(uri, given, next);
        }
        if (given.length >= 2 || startsScript(command)) {
            return [uri, ...given.slice(1)];
        }
        switch (command) {
            case "ranksafe.setArguments":
                return this.askArguments(uri);
            case "ranksafe.setTarget":
                return this.askTarget(uri, next);
            case "ranksafe.setFitDevices":
                await askFitDevices(uri, next);
                return undefined;
            case "ranksafe.setConfigFile":
                return askConfigFile(uri);
            default:
                return given;
        }
    }

    /** A forecast of memory: no run that the Testing view would show, but a script that is started. */
    private async forecast(given: readonly unknown[], next: ExecuteCommandSignature): Promise<unknown> {
        const document = documentOf(given);
        if (!document) {
            tellToOpen();
            return undefined;
        }
        const uri = document.toString();
        const options = (given[1] ?? {}) as Partial<FitDevices>;
        const devices = options.gpus === undefined ? await fitDevices(uri, next) : { gpus: options.gpus };
        if (!devices || !(await this.prepareRun("ranksafe.fit", [uri, { target: `simulated:${devices.gpus}` }]))) {
            return undefined;
        }
        return (await next("ranksafe.fit", [uri, options])) as unknown;
    }

    private async completeDebugging(uri: string, given: readonly unknown[], next: ExecuteCommandSignature): Promise<Arguments> {
        const options = { ...(given[2] as RunOptions | undefined), debugpy: bundledDebugpy() };
        if (typeof given[1] === "number") {
            return [uri, given[1], options];
        }
        await vscode.workspace.saveAll(false);
        // Refused here, the server has said why.
        const { ranks } = ((await next("ranksafe.debugRank", [uri, null, options])) ?? {}) as { readonly ranks?: number };
        const rank = ranks === undefined ? undefined : await askRank(ranks);
        return rank === undefined ? undefined : [uri, rank, options];
    }

    private async prepareRun(command: string, given: unknown[]): Promise<boolean> {
        const script = vscode.Uri.parse(String(given[0]));
        if (script.scheme !== "file") {
            void vscode.window.showInformationMessage(t("Save the script to a file first; ranksafe runs files."));
            return false;
        }
        // Every dirty buffer, not only the script: it may import the others.
        await vscode.workspace.saveAll(false);
        return mayRun(this.context.globalState, {
            script,
            target: command === "ranksafe.debugRank" ? "local" : this.targetOf(command, script, given[1] as RunOptions | undefined),
            interpreter: await this.projectInterpreter(),
            environmentNames: Object.keys(runEnvironment()),
        });
    }

    /** Where the server will run it: what the caller names, else what is remembered for the script. */
    private targetOf(command: string, script: vscode.Uri, options: RunOptions | undefined): string {
        if (typeof options?.target === "string") {
            return options.target;
        }
        const remembered = this.context.workspaceState.get<string>(`target:${script.toString()}`, "local");
        if (command !== "ranksafe.rehearse" || SIMULATED_TARGET.test(remembered)) {
            return remembered;
        }
        return `simulated:${typeof options?.gpus === "number" ? options.gpus : SIMULATED[0]}`;
    }

    private async askArguments(uri: string): Promise<Arguments> {
        const key = `arguments:${uri}`;
        const typed = await vscode.window.showInputBox({
            title: t("Arguments of the script"),
            prompt: t("As in a shell, quotes included; nothing is expanded. Remembered for this file."),
            value: joinArguments(this.context.workspaceState.get<string[]>(key, [])),
            ignoreFocusOut: true,
            validateInput: (text) => (canSplit(text) ? undefined : t("A quote is not closed.")),
        });
        if (typed === undefined) {
            return undefined;
        }
        const words = splitArguments(typed);
        await this.context.workspaceState.update(key, words);
        return [uri, words];
    }

    private async askTarget(uri: string, next: ExecuteCommandSignature): Promise<Arguments> {
        const [other, host, cluster] = [t("Another number of simulated GPUs…"), t("Add a machine, over ssh…"), t("Add a Slurm cluster…")];
        const items = [
            { label: "local", description: t("this machine") },
            ...(await elsewhere(uri, next)),
            ...SIMULATED.map((count) => ({ label: `simulated:${count}`, description: t("a rehearsal on {0} simulated GPUs", count) })),
            ...[other, host, cluster].map((label) => ({ label, description: "" })),
        ];
        const ask = new Map([
            [other, askSimulated],
            [host, () => addHost(next)],
            [cluster, () => addCluster(next)],
        ]);
        const chosen = (await vscode.window.showQuickPick(items, { title: t("Where to run") }))?.label;
        const target = chosen === undefined ? undefined : await (ask.get(chosen) ?? (() => chosen))();
        if (target === undefined) {
            return undefined;
        }
        await this.context.workspaceState.update(`target:${uri}`, target);
        return [uri, target];
    }
}

function tellToOpen(): void {
    void vscode.window.showInformationMessage(t("Open the Python script that starts the training, then try again."));
}

async function isTrusted(): Promise<boolean> {
    if (vscode.workspace.isTrusted) {
        return true;
    }
    const manage = t("Manage Workspace Trust");
    const answer = await vscode.window.showWarningMessage(t("ranksafe starts nothing in a workspace that you have not trusted."), manage);
    if (answer === manage) {
        await vscode.commands.executeCommand("workbench.trust.manage");
    }
    return false;
}

/** The hosts and clusters in the user's own files, which the server reads. */
async function elsewhere(uri: string, next: ExecuteCommandSignature): Promise<vscode.QuickPickItem[]> {
    const answer = (await next("ranksafe.setTarget", [uri])) as { targets?: unknown } | null;
    const names = Array.isArray(answer?.targets) ? answer.targets.map(String) : [];
    return [
        ...names.filter((name) => name.startsWith("ssh:")).map((label) => ({ label, description: t("another machine, over ssh") })),
        ...names.filter((name) => name.startsWith("slurm:")).map((label) => ({ label, description: t("a Slurm cluster") })),
    ];
}

/** Has the server note a target in the user's own file; undefined where it has refused, and said why. */
async function addTarget(next: ExecuteCommandSignature, name: string, options: { readonly login?: string }): Promise<string | undefined> {
    const answer = (await next("ranksafe.addTarget", [name, options])) as { readonly target?: string } | null;
    return answer?.target;
}

async function addHost(next: ExecuteCommandSignature): Promise<string | undefined> {
    const host = await vscode.window.showInputBox({ title: t("Add a machine, over ssh…"), prompt: t("As in a terminal after ssh: a name of your ssh configuration, or user@host."), placeHolder: "user@host" });
    return host?.trim() ? addTarget(next, `ssh:${host.trim()}`, {}) : undefined;
}

async function addCluster(next: ExecuteCommandSignature): Promise<string | undefined> {
    const title = t("Add a Slurm cluster…");
    const name = await vscode.window.showInputBox({ title, prompt: t("A name of your own for the cluster") });
    if (!name?.trim()) {
        return undefined;
    }
    const login = await vscode.window.showInputBox({ title, prompt: t("Its login node, as after ssh; local where that is this machine"), value: "local" });
    return login === undefined ? undefined : addTarget(next, `slurm:${name.trim()}`, { login: login.trim() || "local" });
}

async function askSimulated(): Promise<string | undefined> {
    const count = await vscode.window.showInputBox({
        title: t("Number of simulated GPUs"),
        value: String(SIMULATED[0]),
        validateInput: (text) => (SIMULATED_TARGET.test(`simulated:${text.trim()}`) ? undefined : t("A whole number from 1 on.")),
    });
    return count === undefined ? undefined : `simulated:${count.trim()}`;
}

function canSplit(text: string): boolean {
    try {
        splitArguments(text);
        return true;
    } catch (error) {
        if (error instanceof UnfinishedQuote) {
            return false;
        }
        throw error;
    }
}

async function askRule(): Promise<Arguments> {
    const code = await vscode.window.showInputBox({
        title: t("Code of the rule"),
        placeHolder: "RS201",
        validateInput: (text) => (RULE_CODE.test(text.trim().toUpperCase()) ? undefined : t("A rule's code looks like RS201.")),
    });
    return code === undefined ? undefined : [code.trim().toUpperCase()];
}

/** A log: the one in the active editor if it is a file and no Python, else one that the user chooses. */
async function askLog(): Promise<Arguments> {
    const active = vscode.window.activeTextEditor?.document;
    if (active && active.uri.scheme === "file" && active.languageId !== "python") {
        const [current, other] = [t("This file: {0}", active.uri.path.split("/").pop() ?? ""), t("Choose a file…")];
        const answer = await vscode.window.showQuickPick([current, other], { title: t("Log to explain") });
        if (answer !== other) {
            return answer === current ? [active.uri.toString()] : undefined;
        }
    }
    const files = await vscode.window.showOpenDialog({ title: t("Log to explain"), openLabel: t("Explain") });
    return files?.[0] ? [files[0].toString()] : undefined;
}

/** Engines whose launch the server can put into words; the keys are the server's. */
const LAUNCH_FORMS = { skypilot: "SkyPilot", dstack: "dstack", ray: "Ray Jobs", kubernetes: "Kubernetes (Kubeflow TrainJob)", sagemaker: "SageMaker" } as const;

async function askLaunchForm(uri: string): Promise<Arguments> {
    const items = Object.entries(LAUNCH_FORMS).map(([form, label]) => ({ form, label }));
    const chosen = await vscode.window.showQuickPick(items, { title: t("Launch command for") });
    if (!chosen) {
        return undefined;
    }
    const typed = await vscode.window.showInputBox({
        title: t("Number of nodes"),
        value: "1",
        validateInput: (text) => (/^[1-9]\d*$/.test(text.trim()) ? undefined : t("A whole number from 1 on.")),
    });
    return typed === undefined ? undefined : [uri, chosen.form, { nodes: Number(typed), show: false }];
}

/** Which of several runs that go on is meant. */
async function askRunGoingOn(answer: unknown): Promise<string | undefined> {
    const runs = (answer as { runs?: { runId: string; script: string }[] } | null)?.runs ?? [];
    const items = runs.map(({ runId, script }) => ({ label: vscode.workspace.asRelativePath(script), description: runId, runId }));
    const chosen = items.length > 0 ? await vscode.window.showQuickPick(items, { title: t("Which run?") }) : undefined;
    return chosen?.runId;
}

async function copyText(answer: unknown): Promise<void> {
    const text = (answer as { text?: unknown } | null)?.text;
    if (typeof text === "string") {
        await vscode.env.clipboard.writeText(text);
        vscode.window.setStatusBarMessage(t("ranksafe: launch command copied"), 5_000);
    }
}

async function askConfigFile(uri: string): Promise<Arguments> {
    const choose = t("Choose a file…");
    const forget = t("Use none");
    const answer = await vscode.window.showQuickPick([choose, forget], { title: t("Configuration of accelerate launch for this script") });
    if (answer === forget) {
        return [uri, null];
    }
    if (answer !== choose) {
        return undefined;
    }
    const files = await vscode.window.showOpenDialog({ filters: { "accelerate config": ["yaml", "yml", "json"] } });
    return files?.[0] ? [uri, files[0].fsPath] : undefined;
}
