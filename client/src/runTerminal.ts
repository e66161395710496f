import * as path from "node:path";

import * as vscode from "vscode";

import { t } from "./localize";

const INTERRUPT = "\x03";

/** Where a run's output is to be shown. */
export function wantsTerminal(): boolean {
    return vscode.workspace.getConfiguration("ranksafe").get<string>("runIn", "testResults") === "terminal";
}

/** The runs of one script in a terminal: their output while it comes; Ctrl+C cancels the one that goes on. */
export class RunTerminal implements vscode.Pseudoterminal {
    private readonly output = new vscode.EventEmitter<string>();
    readonly onDidWrite = this.output.event;
    /** What is written before the terminal is open would be lost. */
    private early: string[] | undefined = [];
    private cancel: (() => void) | undefined;
    private wasInterrupted = false;

    constructor(private readonly onClosed: () => void) {}

    /** A run is about to start. */
    begin(title: string): void {
        this.cancel = undefined;
        this.wasInterrupted = false;
        this.write(`\x1b[1m${title}\x1b[0m \x1b[2m(${t("Ctrl+C cancels the run")})\x1b[0m`);
    }

    /** The run can be cancelled from now on. */
    canCancel(cancel: () => void): void {
        this.cancel = cancel;
        if (this.wasInterrupted) {
            cancel();
        }
    }

    write(line: string): void {
        const text = `${line}\r\n`;
        if (this.early) {
            this.early.push(text);
        } else {
            this.output.fire(text);
        }
    }

    /** The run is over, or was not started. */
    end(outcome: string, passed: boolean): void {
        this.cancel = undefined;
        this.write(`\x1b[${passed ? 32 : 31}m${outcome}\x1b[0m\r\n`);
    }

    open(): void {
        this.early?.forEach((text) => this.output.fire(text));
        this.early = undefined;
    }

    close(): void {
        this.onClosed();
    }

    handleInput(typed: string): void {
        if (typed === INTERRUPT) {
            this.wasInterrupted = true;
            this.cancel?.();
        }
    }
}

/** The terminals that are open, by script. */
export class RunTerminals implements vscode.Disposable {
    private readonly open = new Map<string, { readonly terminal: vscode.Terminal; readonly runs: RunTerminal }>();

    /** Shows the terminal of a script; the keyboard stays where it is. */
    show(script: vscode.Uri): RunTerminal {
        const { terminal, runs } = this.open.get(script.fsPath) ?? this.create(script.fsPath);
        terminal.show(true);
        return runs;
    }

    dispose(): void {
        this.open.forEach(({ terminal }) => terminal.dispose());
    }

    private create(script: string): { readonly terminal: vscode.Terminal; readonly runs: RunTerminal } {
        const runs = new RunTerminal(() => this.open.delete(script));
        const name = `ranksafe: ${path.basename(script)}`;
        const made = { terminal: vscode.window.createTerminal({ name, pty: runs, iconPath: new vscode.ThemeIcon("server-process") }), runs };
        this.open.set(script, made);
        return made;
    }
}
