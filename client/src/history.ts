import * as vscode from "vscode";
import type { ExecuteCommandSignature } from "vscode-languageclient/node";

import { dateText, t } from "./localize";

/** A run that is kept, as the server's `ranksafe.showRuns` tells of it. */
export interface KeptRun {
    readonly run_id: string;
    readonly started: number;
    readonly script: string;
    readonly target: string;
    readonly outcome: string;
    readonly seconds: number | null;
    readonly ranks: readonly { readonly rank: number; readonly outcome: string }[];
    /** What a rehearsal could not do. */
    readonly simulation_limit: string | null;
    readonly failures: readonly KeptFailure[];
    /** Optimizer steps after which the run was stopped; "auto": long epochs were cut; null: it went on to its end. */
    readonly steps: number | "auto" | null;
    /** What a rehearsal that passed did not come to: rules' codes and functions, with their lines. */
    readonly unreached: readonly { readonly name: string; readonly filename: string; readonly location: RowColumn }[];
    /** The run's folder. */
    readonly directory: string;
}

interface RowColumn {
    readonly row: number;
    readonly column: number | null;
}

/** A place of the server's, whose rows and columns count from 1. */
export function positionOf({ row, column }: RowColumn): vscode.Position {
    return new vscode.Position(Math.max(0, row - 1), Math.max(0, (column ?? 1) - 1));
}

export interface KeptFailure {
    readonly rank: number | null;
    readonly message: string;
    readonly filename: string | null;
    readonly location: RowColumn | null;
    readonly end_location: RowColumn | null;
    /** Outermost first; none of ranksafe's own. */
    readonly frames: readonly { readonly function: string; readonly filename: string; readonly location: RowColumn | null }[] | null;
    readonly explanation: string | null;
    readonly root_cause: boolean;
}

const ICONS: Readonly<Record<string, string>> = { succeeded: "pass", cancelled: "circle-slash", running: "sync~spin", detached: "question", lost: "question" };

/** Outcomes in words; what the server may add later is shown as it is. */
export function outcomeText(outcome: string): string {
    switch (outcome) {
        case "succeeded":
            return t("succeeded");
        case "failed":
            return t("failed");
        case "silent-failure":
            return t("wrong without an error");
        case "simulation-limit":
            return t("limit of the simulation");
        case "cancelled":
            return t("cancelled");
        case "running":
            return t("running");
        case "not-started":
            return t("not started");
        case "detached":
            return t("end not seen yet");
        case "lost":
            return t("no end recorded");
        default:
            return outcome;
    }
}

/** The runs of the project around a document or the first folder, the newest first. */
export async function keptRuns(execute: ExecuteCommandSignature, uri?: vscode.Uri): Promise<readonly KeptRun[]> {
    const answer = (await execute("ranksafe.showRuns", [uri?.toString() ?? null, { show: false }])) as { runs?: KeptRun[] } | null;
    return answer?.runs ?? [];
}

/** Lets the user choose a run; its report is opened. */
export async function chooseRun(execute: ExecuteCommandSignature): Promise<void> {
    const runs = await keptRuns(execute);
    if (runs.length === 0) {
        void vscode.window.showInformationMessage(t("No run of this project is kept yet."));
        return;
    }
    const items = runs.map((run) => ({
        run,
        label: `$(${ICONS[run.outcome] ?? "error"}) ${run.script.split(/[\\/]/).pop() ?? ""}`,
        description: [outcomeText(run.outcome), run.target, run.seconds === null ? "" : `${Math.round(run.seconds)} s`].filter(Boolean).join(" · "),
        detail: [dateText(run.started), run.failures[0]?.message.split("\n", 1)[0]?.slice(0, 120) ?? ""].filter(Boolean).join("  "),
    }));
    const chosen = await vscode.window.showQuickPick(items, { title: t("Runs of this project"), matchOnDescription: true, matchOnDetail: true });
    if (chosen) {
        await execute("ranksafe.openReport", [chosen.run.run_id]);
    }
}
