import * as vscode from "vscode";
import type { ExecuteCommandSignature } from "vscode-languageclient/node";

import { t } from "./localize";

/** A run that is kept, as the server's `ranksafe.showRuns` tells of it. */
export interface KeptRun {
    readonly run_id: string;
    readonly started: number;
    readonly script: string;
    readonly target: string;
    readonly outcome: string;
    readonly seconds: number | null;
    readonly failures: readonly KeptFailure[];
    /** The run's folder. */
    readonly directory: string;
}

export interface KeptFailure {
    readonly rank: number | null;
    readonly message: string;
    readonly filename: string | null;
    readonly location: { readonly row: number; readonly column: number | null } | null;
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
        detail: [new Date(run.started * 1000).toLocaleString(), run.failures[0]?.message.split("\n", 1)[0]?.slice(0, 120) ?? ""].filter(Boolean).join("  "),
    }));
    const chosen = await vscode.window.showQuickPick(items, { title: t("Runs of this project"), matchOnDescription: true, matchOnDetail: true });
    if (chosen) {
        await execute("ranksafe.openReport", [chosen.run.run_id]);
    }
}
