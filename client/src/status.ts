import * as vscode from "vscode";

import { t } from "./localize";
import type { Server, ServerState } from "./server";

const PYTHON: vscode.DocumentSelector = { language: "python" };

/** What the language status of Python files says of the server and, where it matters, of trust. */
export class Status implements vscode.Disposable {
    private readonly server = vscode.languages.createLanguageStatusItem("ranksafe.server", PYTHON);
    private readonly trust = vscode.languages.createLanguageStatusItem("ranksafe.trust", PYTHON);
    private readonly subscription: vscode.Disposable;

    constructor(server: Server) {
        this.server.name = "ranksafe";
        this.trust.name = t("ranksafe: workspace trust");
        this.subscription = server.onDidChangeState((state) => this.show(state));
        this.show(server.state);
    }

    dispose(): void {
        this.subscription.dispose();
        this.server.dispose();
        this.trust.dispose();
    }

    private show(state: ServerState): void {
        this.server.busy = state.kind === "starting";
        this.server.severity = state.kind === "failed" ? vscode.LanguageStatusSeverity.Error : vscode.LanguageStatusSeverity.Information;
        this.server.command = { command: "ranksafe.showLogs", title: t("Show Logs") };
        switch (state.kind) {
            case "disabled":
                this.server.text = t("ranksafe is off");
                this.server.detail = t("setting {0}", "ranksafe.enable");
                break;
            case "starting":
                this.server.text = t("ranksafe is starting");
                this.server.detail = "";
                break;
            case "running":
                this.server.text = `ranksafe ${state.serverVersion}`;
                this.server.detail = `Python ${state.plan.interpreter.version}`;
                break;
            case "failed":
                this.server.text = t("ranksafe did not start");
                this.server.detail = state.reason.slice(0, 200);
                this.server.command = { command: "ranksafe.restartServer", title: t("Restart") };
                break;
        }
        this.showTrust();
    }

    private showTrust(): void {
        const trusted = vscode.workspace.isTrusted;
        this.trust.text = trusted ? t("runs are allowed") : t("Restricted Mode: findings yes, runs no");
        this.trust.severity = trusted ? vscode.LanguageStatusSeverity.Information : vscode.LanguageStatusSeverity.Warning;
        this.trust.command = { command: "workbench.trust.manage", title: t("Manage") };
    }
}
