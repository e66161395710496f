import * as path from "node:path";

import * as vscode from "vscode";

import { outcomeText, positionOf, type KeptFailure, type KeptRun } from "./history";
import { t } from "./localize";
import { firstSentences, shortened } from "./shortened";

function causeOf(kept: KeptRun): KeptFailure | undefined {
    return kept.failures.find((each) => each.root_cause) ?? kept.failures[0];
}

/** How a run has ended, in a sentence or two. */
export function endText(kept: KeptRun): string {
    const name = path.basename(kept.script);
    const failure = causeOf(kept);
    switch (kept.outcome) {
        case "succeeded":
            return t("ranksafe: {0} passed on {1} ranks", name, kept.ranks.length);
        case "cancelled":
            return outcomeText(kept.outcome);
        case "simulation-limit":
            return t("{0} met a limit of the simulation, which says nothing about the script: {1}", name, shortened(kept.simulation_limit ?? ""));
        default:
            return failure ? failureText(name, failure) : t("{0} failed; the log says why.", name);
    }
}

/** Tells the user how a run has ended, and goes to the line that failed; one that was cancelled needs no word. */
export async function tellEnd(kept: KeptRun): Promise<void> {
    const failure = causeOf(kept);
    switch (kept.outcome) {
        case "succeeded":
            vscode.window.setStatusBarMessage(endText(kept), 10_000);
            return kept.unreached.length > 0 ? tellUnreached(path.basename(kept.script), kept) : undefined;
        case "cancelled":
            return;
        case "simulation-limit":
            return offer(vscode.window.showWarningMessage, endText(kept), kept);
        default:
            if (failure) {
                await reveal(failure);
            }
            return offer(vscode.window.showErrorMessage, endText(kept), kept, failure);
    }
}

const MOST_PLACES = 3;

/** A rehearsal that passed says nothing about lines that no rank came to. */
async function tellUnreached(name: string, { script, steps, unreached }: KeptRun): Promise<void> {
    const places = unreached.slice(0, MOST_PLACES).map((each) => t("{0} (line {1})", each.name, each.location.row));
    const listed = [...places, ...(unreached.length > MOST_PLACES ? ["…"] : [])].join(", ");
    const [line, whole] = [t("Show"), t("Rehearse to the End")];
    const text =
        typeof steps !== "number" ? t("{0} passed, but no rank was seen to reach {1}.", name, listed) : t("{0} passed, but did not reach in {1} steps: {2}.", name, steps, listed);
    const chosen = await vscode.window.showInformationMessage(text, line, ...(steps === null ? [] : [whole]));
    const first = unreached[0];
    if (chosen === whole) {
        await vscode.commands.executeCommand("ranksafe.rehearse", vscode.Uri.file(script).toString(), { toTheEnd: true });
    } else if (chosen === line && first) {
        await vscode.window.showTextDocument(vscode.Uri.file(first.filename), { selection: new vscode.Range(positionOf(first.location), positionOf(first.location)) });
    }
}

/** "rank 1", where the message does not begin with it: the place may then be another rank's, which waited for it. */
export function unnamedRank(failure: KeptFailure): string {
    const rank = failure.rank === null ? "" : `rank ${failure.rank}`;
    return failure.message.startsWith(`${rank} `) ? "" : rank;
}

function failureText(name: string, failure: KeptFailure): string {
    const line = failure.filename && failure.location ? `${path.basename(failure.filename)}:${failure.location.row}` : "";
    const where = [unnamedRank(failure), line].filter(Boolean).join(", ");
    const what = where ? t("{0} ({1})", shortened(failure.message), where) : shortened(failure.message);
    const head = t("{0} failed: {1}.", name, what);
    // What it means comes last, for that is what is read.
    return `${head}${head.endsWith("。") ? "" : " "}${firstSentences(failure.explanation ?? "")}`.trimEnd();
}

type Message = (text: string, ...items: string[]) => Thenable<string | undefined>;

async function offer(show: Message, text: string, kept: KeptRun, failure?: KeptFailure): Promise<void> {
    const [line, report, log] = [t("Show"), t("Report"), t("Log")];
    const choices = failure?.filename && failure.location ? [line, report, log] : [report, log];
    const chosen = await show(text, ...choices);
    if (chosen === line && failure) {
        await open(failure, false);
    } else if (chosen === report) {
        await vscode.commands.executeCommand("ranksafe.openReport", kept.run_id);
    } else if (chosen === log) {
        await vscode.commands.executeCommand("ranksafe.openLog", kept.run_id);
    }
}

/** Shows the line that failed, where it is the user's own and the user wants that; the cursor's window keeps the keyboard. */
async function reveal(failure: KeptFailure): Promise<void> {
    const wanted = vscode.workspace.getConfiguration("ranksafe").get<boolean>("revealFailure", true);
    if (wanted && failure.filename && vscode.workspace.getWorkspaceFolder(vscode.Uri.file(failure.filename))) {
        await open(failure, true);
    }
}

async function open({ filename, location, end_location: end }: KeptFailure, preserveFocus: boolean): Promise<void> {
    if (!filename || !location) {
        return;
    }
    const start = positionOf(location);
    const stop = end ? positionOf(end) : start;
    await vscode.window.showTextDocument(vscode.Uri.file(filename), { selection: new vscode.Range(start, stop), preserveFocus }).then(undefined, () => undefined);
}
