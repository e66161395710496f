import * as vscode from "vscode";

import { canDebug } from "./debugger";
import { entryOf } from "./entries";
import { outcomeText, positionOf, type KeptFailure, type KeptRun } from "./history";
import { linesSince, type RankLine } from "./liveLog";
import { dateText, t } from "./localize";
import { endText, tellEnd, unnamedRank } from "./runEnd";
import { RunTerminals, wantsTerminal, type RunTerminal } from "./runTerminal";

const POLL_MILLISECONDS = 500;
/** Past runs of a script that the view tells of. */
const PAST_RUNS = 5;
/** ANSI colours by which the ranks are told apart, over and over. */
const COLORS = [36, 35, 33, 32, 34, 31] as const;

/** Starts the run on the server; the answer has the run's id, unless it was refused. */
type Start = () => Promise<unknown>;

interface Shown {
    readonly run: vscode.TestRun;
    readonly item: vscode.TestItem;
    /** Where the user wants to see the output, if not in Test Results. */
    readonly terminal: RunTerminal | undefined;
}

/**
 * Runs as VS Code's Testing view shows them, wherever they were started: the ranks' output while it comes, each rank an
 * item of its own, the tick at the script's entry, each failure at its line, and past runs.
 */
export class Testing implements vscode.Disposable {
    private readonly controller = vscode.tests.createTestController("ranksafe", "ranksafe");
    private readonly told = new Set<string>();
    private readonly terminals = new RunTerminals();
    private readonly subscriptions: vscode.Disposable[] = [this.controller, this.terminals];
    private readonly profiles: ReadonlyMap<string, vscode.TestRunProfile>;
    /** Runs that the Testing view has asked for and that are about to be started, by script. */
    private readonly expected = new Map<string, vscode.TestRun>();
    private readonly following = new Map<string, Promise<void>>();

    constructor() {
        const { Run, Debug } = vscode.TestRunProfileKind;
        const kinds: [string, vscode.TestRunProfileKind][] = [
            ["ranksafe.run", Run],
            ["ranksafe.rehearse", Run],
            ["ranksafe.smokeRun", Run],
        ];
        if (canDebug()) {
            kinds.push(["ranksafe.debugRank", Debug]);
        }
        this.profiles = new Map(
            kinds.map(([command, kind]) => {
                const run = (request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> => this.run(command, request, token);
                return [command, this.controller.createRunProfile(labelOf(command), kind, run, command === "ranksafe.run" || kind === Debug)];
            }),
        );
        this.controller.resolveHandler = async (item) => (item ? undefined : this.refresh());
        this.controller.refreshHandler = () => this.refresh();
    }

    /** The user reads another language from now on. */
    relabel(): void {
        this.profiles.forEach((profile, command) => (profile.label = labelOf(command)));
    }

    dispose(): void {
        this.subscriptions.forEach((each) => each.dispose());
    }

    /** Starts a run of a script, and shows it from now on; returns the server's answer as soon as it has come. */
    async start(command: string, uri: vscode.Uri, start: Start): Promise<unknown> {
        const item = this.itemOf(uri);
        item.range = (await entryOf(uri)) ?? item.range;
        const wanted = this.expected.get(item.id);
        this.expected.delete(item.id);
        const run = wanted ?? this.controller.createTestRun(new vscode.TestRunRequest([item], undefined, this.profiles.get(command)), undefined, true);
        run.started(item);
        const terminal = wantsTerminal() ? this.terminals.show(uri) : undefined;
        terminal?.begin(`${labelOf(command)}: ${item.label}`);
        const answer = await start();
        const id = (answer as { runId?: unknown } | null)?.runId;
        if (typeof id !== "string") {
            run.skipped(item);
            terminal?.end(outcomeText("not-started"), false);
        } else {
            this.told.add(id);
            const cancel = (): void => void vscode.commands.executeCommand("ranksafe.cancelRun", id);
            terminal?.canCancel(cancel);
            const cancelling = run.token.onCancellationRequested(cancel);
            this.following.set(
                item.id,
                this.follow({ run, item, terminal }, id).finally(() => cancelling.dispose()),
            );
        }
        if (!wanted) {
            void Promise.resolve(this.following.get(item.id)).finally(() => run.end());
            if (!terminal) {
                await showOutput();
            }
        }
        return answer;
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
            const run = this.controller.createTestRun(request, `${dateText(kept.started)} · ${kept.target}`, false);
            tellResult(run, item, kept);
            run.end();
        }
    }

    /** What the Testing view asks for; a rank alone cannot be run. */
    private async run(command: string, request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> {
        if (request.include === undefined) {
            await this.refresh();
        }
        const all: vscode.TestItem[] = [];
        this.controller.items.forEach((item) => all.push(item));
        const excluded = new Set(request.exclude);
        const wanted = new Set((request.include ?? all).map((item) => item.parent ?? item));
        const run = this.controller.createTestRun(request);
        for (const item of wanted) {
            if (!token.isCancellationRequested && !excluded.has(item)) {
                await this.runOne(command, run, item);
            }
        }
        run.end();
    }

    private async runOne(command: string, run: vscode.TestRun, item: vscode.TestItem): Promise<void> {
        this.expected.set(item.id, run);
        this.following.delete(item.id);
        await vscode.commands.executeCommand(command, item.uri?.toString());
        if (this.expected.delete(item.id)) {
            // Nothing was started: the user has changed their mind.
            run.skipped(item);
        }
        await this.following.get(item.id);
    }

    /** Shows a run until it has ended. */
    private async follow(shown: Shown, id: string): Promise<void> {
        let end = 0;
        for (;;) {
            const kept = (await keptRuns(shown.item.uri, id))[0];
            if (kept) {
                const news = await linesSince(kept.directory, end);
                end = news.end;
                this.append(shown, news.lines);
            }
            if (kept && kept.outcome !== "running") {
                for (const { rank, outcome } of kept.ranks) {
                    tellRank(shown.run, this.rankOf(shown.item, rank), outcome);
                }
                tellResult(shown.run, shown.item, kept);
                // Of a script that prints nothing the view would say that nothing was recorded.
                shown.run.appendOutput(`${endText(kept).replaceAll("\n", "\r\n")}\r\n`, undefined, shown.item);
                shown.terminal?.end(endText(kept), kept.outcome === "succeeded");
                void tellEnd(kept);
                return;
            }
            await new Promise((resolve) => setTimeout(resolve, POLL_MILLISECONDS));
        }
    }

    private append({ run, item, terminal }: Shown, lines: readonly RankLine[]): void {
        for (const { rank, text } of lines) {
            const line = `\x1b[${COLORS[rank % COLORS.length] ?? COLORS[0]}m[rank ${rank}]\x1b[0m ${text}`;
            run.appendOutput(`${line}\r\n`, undefined, this.rankOf(item, rank));
            terminal?.write(line);
        }
    }

    /** A rank's item below its script's: what it alone has printed is shown where it is chosen. */
    private rankOf(item: vscode.TestItem, rank: number): vscode.TestItem {
        const id = `${item.id}#${rank}`;
        const known = item.children.get(id);
        if (known) {
            return known;
        }
        const child = this.controller.createTestItem(id, `rank ${rank}`);
        child.sortText = String(rank).padStart(6, "0");
        item.children.add(child);
        return child;
    }
}

/** What a way to run a script is called. */
function labelOf(command: string): string {
    switch (command) {
        case "ranksafe.rehearse":
            return t("Rehearse on simulated GPUs");
        case "ranksafe.smokeRun":
            return t("Smoke run");
        case "ranksafe.debugRank":
            return t("Debug a rank");
        default:
            return t("Run on GPUs");
    }
}

/** Opens the output of the run that was started last; the keyboard stays with the editor, whichever that is by then. */
async function showOutput(): Promise<void> {
    const typing = vscode.window.activeTextEditor !== undefined;
    await vscode.commands.executeCommand("testing.showMostRecentOutput").then(undefined, () => undefined);
    if (typing) {
        await vscode.commands.executeCommand("workbench.action.focusActiveEditorGroup");
    }
}

/** The runs of the project around a script, or of the first folder; with `run` that one alone, which is asked for often. */
async function keptRuns(uri?: vscode.Uri, run?: string): Promise<readonly KeptRun[]> {
    const answer = await vscode.commands.executeCommand<{ runs?: KeptRun[] } | undefined>("ranksafe.showRuns", uri?.toString() ?? null, { show: false, run }).then(
        (value) => value,
        () => undefined,
    );
    return answer?.runs ?? [];
}

function tellRank(run: vscode.TestRun, rank: vscode.TestItem, outcome: string): void {
    switch (outcome) {
        case "succeeded":
            return run.passed(rank);
        case "failed":
        case "killed":
            return run.failed(rank, []);
        default:
            return run.skipped(rank);
    }
}

function tellResult(run: vscode.TestRun, item: vscode.TestItem, kept: KeptRun): void {
    const duration = kept.seconds === null ? undefined : kept.seconds * 1000;
    switch (kept.outcome) {
        case "succeeded":
            return run.passed(item, duration);
        case "failed":
        case "silent-failure":
            return run.failed(item, messagesOf(kept), duration);
        case "cancelled":
            return run.skipped(item);
        default:
            return run.errored(item, new vscode.TestMessage(kept.simulation_limit ?? outcomeText(kept.outcome)), duration);
    }
}

/** The causes; ranks that only lost a peer are told of in the Problems view. */
function messagesOf(kept: KeptRun): vscode.TestMessage[] {
    const causes = kept.failures.filter((failure) => failure.root_cause);
    const told = causes.length > 0 ? causes : kept.failures;
    return told.length > 0 ? told.map(messageOf) : [new vscode.TestMessage(outcomeText(kept.outcome))];
}

function messageOf(failure: KeptFailure): vscode.TestMessage {
    const rank = unnamedRank(failure);
    const message = new vscode.TestMessage(`${rank}${rank && ": "}${failure.message}\n\n${failure.explanation ?? ""}`.trimEnd());
    if (failure.filename && failure.location) {
        message.location = new vscode.Location(vscode.Uri.file(failure.filename), positionOf(failure.location));
    }
    return withStack(message, failure);
}

interface WithStackFrames {
    readonly TestMessageStackFrame?: new (label: string, uri?: vscode.Uri, position?: vscode.Position) => object;
}

/** The calls that led there, innermost first, where the editor can show them (VS Code 1.93). */
function withStack(message: vscode.TestMessage, failure: KeptFailure): vscode.TestMessage {
    const Frame = (vscode as unknown as WithStackFrames).TestMessageStackFrame;
    if (Frame) {
        const frames = [...(failure.frames ?? [])].reverse();
        const stackTrace = frames.map((frame) => new Frame(frame.function, vscode.Uri.file(frame.filename), frame.location ? positionOf(frame.location) : undefined));
        Object.assign(message, { stackTrace });
    }
    return message;
}
