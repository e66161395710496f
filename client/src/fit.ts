import * as vscode from "vscode";
import type { ExecuteCommandSignature } from "vscode-languageclient/node";

import { t } from "./localize";

/** What a forecast of memory is for. */
export interface FitDevices {
    readonly gpus: number;
    readonly deviceModel: string;
}

interface Known extends FitDevices {
    readonly isChosen: boolean;
    readonly models: readonly { readonly key: string; readonly name: string; readonly gib: number }[];
}

const COUNTS = [1, 2, 4, 8, 16, 32, 64] as const;

/** The GPUs that were chosen for a script, by the user now where that was never done; undefined where they turn away. */
export async function fitDevices(uri: string, next: ExecuteCommandSignature): Promise<FitDevices | undefined> {
    const known = await knownDevices(uri, next);
    return known?.isChosen ? known : askDevices(uri, next, known);
}

/** Asks which GPUs a script's memory is forecast for, and has the server remember them. */
export async function askFitDevices(uri: string, next: ExecuteCommandSignature): Promise<FitDevices | undefined> {
    return askDevices(uri, next, await knownDevices(uri, next));
}

/** Undefined where the server has refused, and said why. */
async function knownDevices(uri: string, next: ExecuteCommandSignature): Promise<Known | undefined> {
    const answer = (await next("ranksafe.setFitDevices", [uri])) as Known | { readonly models?: undefined } | null;
    return answer?.models ? answer : undefined;
}

async function askDevices(uri: string, next: ExecuteCommandSignature, known: Known | undefined): Promise<FitDevices | undefined> {
    if (!known) {
        return undefined;
    }
    const models = known.models.map(({ key, name, gib }) => ({ label: key.toUpperCase(), description: `${name}, ${gib} GiB`, key }));
    const model = await vscode.window.showQuickPick(first(models, ({ key }) => key === known.deviceModel), { title: t("Which GPU is the memory forecast for?") });
    if (!model) {
        return undefined;
    }
    const counts = COUNTS.map((gpus) => ({ label: `${gpus} × ${model.label}`, gpus }));
    const count = await vscode.window.showQuickPick(first(counts, ({ gpus }) => gpus === known.gpus), { title: t("How many of them?") });
    if (!count) {
        return undefined;
    }
    const devices = { gpus: count.gpus, deviceModel: model.key };
    await next("ranksafe.setFitDevices", [uri, devices]);
    return devices;
}

/** The one that was chosen before, or would be taken, stands first. */
function first<Item>(items: readonly Item[], is: (item: Item) => boolean): Item[] {
    return [...items.filter(is), ...items.filter((item) => !is(item))];
}
