import * as vscode from "vscode";

import { completeConfigurationFiles } from "./configurationFiles";
import { followDebugger } from "./debugger";
import { debugInformation } from "./debugInformation";
import { warnOfTrustHole } from "./editorVersion";
import { t, useLanguage } from "./localize";
import { registerOpenPlace } from "./pages";
import { onInterpreterSelected } from "./pythonExtension";
import { RunCommands } from "./runs";
import type { Server, ServerState } from "./server";
import * as settings from "./settings";
import { Status } from "./status";
import { Testing } from "./testing";
import { openExample } from "./walkthrough";

/** Settings that decide how the server is started; the others reach a running server. */
const START_SETTINGS = ["enable", "importStrategy", "serverInterpreter", "interpreter", "runEnvironment", "sshConfigFile", "rehearseOnSave", "language"].map((name) => `ranksafe.${name}`);

let server: Server | undefined;

function registerCommands(context: vscode.ExtensionContext, running: Server, log: vscode.LogOutputChannel): void {
    const commands: Readonly<Record<string, () => unknown>> = {
        "ranksafe.restartServer": () => running.restart(),
        "ranksafe.showLogs": () => log.show(),
        "ranksafe.openExample": () => openExample(context),
        "ranksafe.copyDebugInformation": async () => {
            await vscode.env.clipboard.writeText(debugInformation(context, running));
            vscode.window.setStatusBarMessage(t("ranksafe: debug information copied"), 5_000);
        },
    };
    for (const [id, run] of Object.entries(commands)) {
        context.subscriptions.push(vscode.commands.registerCommand(id, run));
    }
}

function followChanges(context: vscode.ExtensionContext, running: Server, testing: Testing): void {
    context.subscriptions.push(
        vscode.workspace.onDidChangeConfiguration(async (change) => {
            if (!change.affectsConfiguration("ranksafe")) {
                return;
            }
            useLanguage(settings.language());
            testing.relabel();
            if (START_SETTINGS.some((name) => change.affectsConfiguration(name))) {
                await running.restartIfChanged();
            }
            await running.configurationChanged();
        }),
        vscode.workspace.onDidGrantWorkspaceTrust(async () => {
            await running.restartIfChanged();
            await running.sendTrust();
            await running.configurationChanged();
        }),
    );
    void onInterpreterSelected(() => void running.restartIfChanged()).then((subscription) => {
        if (subscription) {
            context.subscriptions.push(subscription);
        }
    });
}

async function reportFailure(state: ServerState): Promise<void> {
    if (state.kind !== "failed") {
        return;
    }
    const [logs, choose] = [t("Show Logs"), t("Name a Python")];
    const message = state.missingPython ? t("ranksafe found no Python 3.10 or newer to run on.") : t("ranksafe's server does not run; the log says why.");
    const answer = await vscode.window.showErrorMessage(message, logs, choose);
    if (answer === logs) {
        await vscode.commands.executeCommand("ranksafe.showLogs");
    } else if (answer === choose) {
        await vscode.commands.executeCommand("workbench.action.openSettings", "ranksafe.serverInterpreter");
    }
}

export async function activate(context: vscode.ExtensionContext): Promise<void> {
    useLanguage(settings.language());
    // The language client is most of our code; the editor's start, which waits for what is loaded first, goes on before it.
    await new Promise((resolve) => setImmediate(resolve));
    const { Server } = await import("./server.js");
    const log = vscode.window.createOutputChannel("ranksafe", { log: true });
    const testing = new Testing();
    const runs = new RunCommands(context, () => running.projectInterpreter(), testing);
    const running: Server = new Server(context, log, runs.middleware);
    server = running;
    context.subscriptions.push(log, running, new Status(running), testing, completeConfigurationFiles(), registerOpenPlace(), followDebugger(), running.onDidChangeState(reportFailure));
    registerCommands(context, running, log);
    followChanges(context, running, testing);
    warnOfTrustHole(context, log);
    await running.restart();
}

export async function deactivate(): Promise<void> {
    await server?.stop();
}
