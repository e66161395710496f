import { open } from "node:fs/promises";
import * as path from "node:path";

import * as vscode from "vscode";

import { outcomeText, type KeptFailure, type KeptRun } from "./history";
import { t } from "./localize";

const POLL_MILLISECONDS = 500;
/** Past runs of a script that the view tells of. */
const PAST_RUNS = 5;
const MOST_OUTPUT = 1_000_000;
const LAUNCHER_MARK = "[launcher] ";
const STARTS = new Set(["ranksafe.run", "ranksafe.smokeRun", "ranksafe.rehearse"]);

interface Profile {
    readonly command: string;
    readonly label: string;
}

/**
 * The scripts of the project in the Testing view: started from there, with the ranks' output while they run, and their
 * past runs with each failure at its line. Everything goes through the server's commands.
 */
export class Testing implements vscode.Disposable {
    private readonly controller = vscode.tests.createTestController("ranksafe", "ranksafe");
    private readonly told = new Set<string>();
    private readonly subscriptions: vscode.Disposable[] = [this.controller];

    constructor() {
        const profiles: readonly Profile[] = [
            { command: "ranksafe.run", label: t("Run on GPUs") },
            { command: "ranksafe.rehearse", label: t("Rehearse on simulated GPUs") },
            { command: "ranksafe.smokeRun", label: t("Smoke run") },
        ];
        profiles.forEach(({ command, label }, index) => {
            const run = (request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> => this.run(command, request, token);
            this.controller.createRunProfile(label, vscode.TestRunProfileKind.Run, run, index === 0);
        });
        this.controller.resolveHandler = async (item) => (item ? undefined : this.refresh());
        this.controller.refreshHandler = () => this.refresh();
    }

    dispose(): void {
        this.subscriptions.forEach((each) => each.dispose());
    }

    /** Scripts that were run before, and the one in the active editor if it can be run. */
    private async refresh(): Promise<void> {
        const runs = await keptRuns();
        for (const script of new Set(runs.map((run) => run.script))) {
            this.itemOf(vscode.Uri.file(script));
        }
        const active = vscode.window.activeTextEditor?.document;
        if (active?.languageId === "python" && active.uri.scheme === "file") {
            const entry = await entryOf(active.uri);
            if (entry) {
                this.itemOf(active.uri).range = entry;
            }
        }
        this.controller.items.forEach((item) => this.tellPastRuns(item, runs));
    }

    private itemOf(uri: vscode.Uri): vscode.TestItem {
        const known = this.controller.items.get(uri.fsPath);
        if (known) {
            return known;
        }
        const item = this.controller.createTestItem(uri.fsPath, vscode.workspace.asRelativePath(uri), uri);
        this.controller.items.add(item);
        return item;
    }

    /** Oldest first, so that the state which remains is that of the last run. */
    private tellPastRuns(item: vscode.TestItem, runs: readonly KeptRun[]): void {
        const own = runs.filter((run) => run.script === item.id && run.seconds !== null).slice(0, PAST_RUNS);
        for (const kept of own.reverse()) {
            if (this.told.has(kept.run_id)) {
                continue;
            }
            this.told.add(kept.run_id);
            const request = new vscode.TestRunRequest([item], undefined, undefined, false, true);
            const run = this.controller.createTestRun(request, `${new Date(kept.started * 1000).toLocaleString()} · ${kept.target}`, false);
            tellResult(run, item, kept);
            run.end();
        }
    }

    private async run(command: string, request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> {
        if (request.include === undefined) {
            await this.refresh();
        }
        const items: vscode.TestItem[] = [];
        this.controller.items.forEach((item) => items.push(item));
        const excluded = new Set(request.exclude);
        const run = this.controller.createTestRun(request);
        for (const item of (request.include ?? items).filter((each) => !excluded.has(each))) {
            if (!token.isCancellationRequested) {
                await this.runOne(command, run, item, token);
            }
        }
        run.end();
    }

    private async runOne(command: string, run: vscode.TestRun, item: vscode.TestItem, token: vscode.CancellationToken): Promise<void> {
        run.started(item);
        const answer = STARTS.has(command) ? await vscode.commands.executeCommand<{ runId?: string } | undefined>(command, item.uri?.toString()) : undefined;
        const id = answer?.runId;
        if (!id) {
            run.skipped(item);
            return;
        }
        this.told.add(id);
        const cancelling = token.onCancellationRequested(() => void vscode.commands.executeCommand("ranksafe.cancelRun", id));
        let shown = 0;
        try {
            for (;;) {
                const kept = (await keptRuns(item.uri)).find((each) => each.run_id === id);
                shown = kept ? await showOutput(run, item, kept, shown) : shown;
                if (kept && kept.outcome !== "running") {
                    tellResult(run, item, kept);
                    return;
                }
                await new Promise((resolve) => setTimeout(resolve, POLL_MILLISECONDS));
            }
        } finally {
            cancelling.dispose();
        }
    }
}

async function keptRuns(uri?: vscode.Uri): Promise<readonly KeptRun[]> {
    const answer = await vscode.commands.executeCommand<{ runs?: KeptRun[] } | undefined>("ranksafe.showRuns", uri?.toString() ?? null, { show: false }).then(
        (value) => value,
        () => undefined,
    );
    return answer?.runs ?? [];
}

/** Where the lens to run a script stands; undefined for a file that is no script. */
async function entryOf(uri: vscode.Uri): Promise<vscode.Range | undefined> {
    const lenses = (await vscode.commands.executeCommand<vscode.CodeLens[] | undefined>("vscode.executeCodeLensProvider", uri)) ?? [];
    return lenses.find((lens) => STARTS.has(lens.command?.command ?? ""))?.range;
}

/** What the ranks have written since, colours included; returns how much was shown in all. */
async function showOutput(run: vscode.TestRun, item: vscode.TestItem, kept: KeptRun, shown: number): Promise<number> {
    const { text, end } = await linesSince(path.join(kept.directory, "log.txt"), shown);
    const lines = text.split(/(?<=\n)/);
    // The launcher repeats in many lines that a rank failed; they are in the log.
    const ofRanks = lines.filter((line) => !line.startsWith(LAUNCHER_MARK)).join("");
    if (ofRanks) {
        run.appendOutput(ofRanks.replace(/\r?\n/g, "\r\n"), undefined, item);
    }
    return end;
}

/**
 * The whole lines of a growing file from the byte `from` on, of very many the last: a log may have gigabytes, and is
 * looked at twice a second. Ends at a line's end, so that a character of several bytes is not cut in two.
 */
async function linesSince(file: string, from: number): Promise<{ readonly text: string; readonly end: number }> {
    const nothing = { text: "", end: from };
    const handle = await open(file).catch(() => undefined);
    if (!handle) {
        return nothing;
    }
    try {
        const { size } = await handle.stat();
        const start = Math.max(from, size - MOST_OUTPUT);
        if (size <= start) {
            return nothing;
        }
        const { bytesRead, buffer } = await handle.read(Buffer.alloc(size - start), 0, size - start, start);
        const length = buffer.subarray(0, bytesRead).lastIndexOf(10) + 1;
        return length === 0 ? nothing : { text: new TextDecoder().decode(buffer.subarray(0, length)), end: start + length };
    } finally {
        await handle.close();
    }
}

function tellResult(run: vscode.TestRun, item: vscode.TestItem, kept: KeptRun): void {
    const duration = kept.seconds === null ? undefined : kept.seconds * 1000;
    switch (kept.outcome) {
        case "succeeded":
            return run.passed(item, duration);
        case "failed":
        case "silent-failure":
            return run.failed(item, kept.failures.length > 0 ? kept.failures.map(messageOf) : new vscode.TestMessage(outcomeText(kept.outcome)), duration);
        case "cancelled":
            return run.skipped(item);
        default:
            return run.errored(item, new vscode.TestMessage(outcomeText(kept.outcome)), duration);
    }
}

function messageOf(failure: KeptFailure): vscode.TestMessage {
    const rank = failure.rank === null ? "" : `rank ${failure.rank}: `;
    const message = new vscode.TestMessage(rank + failure.message);
    if (failure.filename && failure.location) {
        const place = new vscode.Position(Math.max(0, failure.location.row - 1), Math.max(0, (failure.location.column ?? 1) - 1));
        message.location = new vscode.Location(vscode.Uri.file(failure.filename), place);
    }
    return message;
}
