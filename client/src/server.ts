import * as vscode from "vscode";
import { CloseAction, ErrorAction, LanguageClient, State, type LanguageClientOptions, type Middleware } from "vscode-languageclient/node";

import { showDocument } from "./documents";
import { provideCodeLenses } from "./entries";
import { NoInterpreter } from "./interpreter";
import { planLaunch, type LaunchPlan } from "./launch";
import { t } from "./localize";
import { selectedInterpreter } from "./pythonExtension";
import * as settings from "./settings";
import { TrustNotification, untrustedFolders } from "./trust";

const STOP_MILLISECONDS = 5_000;
const RESTARTS = 3;

export type ServerState =
    | { readonly kind: "disabled" }
    | { readonly kind: "starting" }
    | { readonly kind: "running"; readonly plan: LaunchPlan; readonly serverVersion: string }
    | { readonly kind: "failed"; readonly reason: string; readonly missingPython: boolean };

function documentSelector(): NonNullable<LanguageClientOptions["documentSelector"]> {
    return ["file", "untitled", "vscode-notebook-cell"].map((scheme) => ({ scheme, language: "python" }));
}

/** What a running server was started with and cannot be told anew; its analysis settings it can. */
interface Start {
    readonly plan: LaunchPlan;
    /** What reaches a process: read by the server from its initialization options only. */
    readonly user: { readonly locale: string; readonly python: string | null; readonly runEnvironment: Readonly<Record<string, string>>; readonly sshConfigFile: string | null; readonly rehearseOnSave: boolean };
}

function same(left: Start | undefined, right: Start | undefined): boolean {
    return JSON.stringify(left) === JSON.stringify(right);
}

/** The library's own notifications about a server that does not start: the state says it once, in the user's language. */
class QuietClient extends LanguageClient {
    override error(message: string, data?: unknown, showNotification: boolean | "force" = true): void {
        super.error(message, data, showNotification === "force" ? false : showNotification);
    }
}

/** The one language server of this window: its process, its client and what is known of its state. */
export class Server implements vscode.Disposable {
    private client: LanguageClient | undefined;
    private started: Start | undefined;
    private crashes = 0;
    /** Starts and stops happen one after the other, in the order in which they were asked for. */
    private queue: Promise<void> = Promise.resolve();
    private readonly changed = new vscode.EventEmitter<ServerState>();
    readonly onDidChangeState = this.changed.event;
    state: ServerState = { kind: "starting" };

    constructor(
        private readonly context: vscode.ExtensionContext,
        private readonly log: vscode.LogOutputChannel,
        private readonly middleware: Middleware,
    ) {}

    /** Starts the server, or restarts it. Failures are shown in the state, not thrown. */
    restart(): Promise<void> {
        return this.enqueue(async () => {
            this.crashes = 0;
            await this.stopNow();
            await this.startNow();
        });
    }

    stop(): Promise<void> {
        return this.enqueue(() => this.stopNow());
    }

    /** Restarts only if trust or settings now ask for a server that is started in another way. */
    restartIfChanged(): Promise<void> {
        return this.enqueue(async () => {
            const next = settings.isEnabled() ? await this.chooseStart().catch(() => undefined) : undefined;
            if (!next || !same(this.started, next)) {
                await this.stopNow();
                await this.startNow();
            }
        });
    }

    /** Tells a running server that the trust in the workspace has changed. */
    async sendTrust(): Promise<void> {
        if (this.client?.state === State.Running) {
            await this.client.sendNotification(TrustNotification, { trusted: vscode.workspace.isTrusted });
        }
    }

    /** Tells a running server to ask for its configuration again. */
    async configurationChanged(): Promise<void> {
        if (this.client?.state === State.Running) {
            await this.client.sendNotification("workspace/didChangeConfiguration", { settings: { ranksafe: settings.analysisSettings() } });
        }
    }

    dispose(): void {
        void this.stop();
        this.changed.dispose();
    }

    /** The Python of the user's project. In an untrusted workspace only a setting of the user's own names one. */
    async projectInterpreter(): Promise<string | undefined> {
        const named = settings.projectInterpreter();
        return named ?? (vscode.workspace.isTrusted ? await selectedInterpreter() : undefined);
    }

    private enqueue(work: () => Promise<void>): Promise<void> {
        this.queue = this.queue.then(work, work);
        return this.queue;
    }

    private async chooseStart(): Promise<Start> {
        const project = await this.projectInterpreter();
        const plan = await planLaunch({
            extensionFolder: this.context.extensionPath,
            trusted: vscode.workspace.isTrusted,
            workspaceFolders: untrustedFolders(),
            strategy: settings.importStrategy(),
            serverInterpreter: settings.serverInterpreter(),
            projectInterpreter: project,
            searchPath: process.env.PATH,
        });
        const sshConfigFile = settings.sshConfigFile() ?? null;
        const user = { locale: settings.language(), python: project ?? null, runEnvironment: settings.runEnvironment(), sshConfigFile, rehearseOnSave: settings.rehearseOnSave() };
        return { plan, user };
    }

    private async startNow(): Promise<void> {
        if (!settings.isEnabled()) {
            this.setState({ kind: "disabled" });
            return;
        }
        this.setState({ kind: "starting" });
        try {
            const start = await this.chooseStart();
            const { plan } = start;
            this.log.info(`starting ${[plan.interpreter.path, ...plan.arguments].join(" ")} (Python ${plan.interpreter.version})`);
            const client = this.createClient(start);
            this.client = client;
            await client.start();
            this.started = start;
            await client.sendNotification(TrustNotification, { trusted: plan.trusted });
            this.setState({ kind: "running", plan, serverVersion: client.initializeResult?.serverInfo?.version ?? "?" });
        } catch (error) {
            const reason = error instanceof Error ? error.message : String(error);
            this.log.error(`the server did not start: ${reason}`);
            this.setState({ kind: "failed", reason, missingPython: error instanceof NoInterpreter });
            await this.stopNow();
        }
    }

    private createClient({ plan, user }: Start): LanguageClient {
        const options: LanguageClientOptions = {
            documentSelector: documentSelector(),
            outputChannel: this.log,
            initializationOptions: {
                ...user,
                trusted: plan.trusted,
                stateDirectory: this.context.globalStorageUri.fsPath,
                settings: settings.analysisSettings(),
                showsRuns: true,
            },
            middleware: {
                ...this.middleware,
                provideCodeLenses,
                window: { showDocument },
                // The section as the settings module reads it, not as the folder wrote it.
                workspace: { configuration: ({ items }) => items.map(({ section }) => (section === "ranksafe" ? settings.analysisSettings() : null)) },
            },
            errorHandler: {
                error: () => ({ action: ErrorAction.Continue }),
                closed: () => this.serverDied(),
            },
            initializationFailedHandler: () => false,
        };
        const server = {
            command: plan.interpreter.path,
            args: [...plan.arguments],
            options: { cwd: plan.workingDirectory },
        };
        return new QuietClient("ranksafe", "ranksafe", server, options);
    }

    private serverDied(): { action: CloseAction; handled: boolean } {
        this.crashes += 1;
        if (this.state.kind === "running" && this.crashes <= RESTARTS) {
            this.log.warn(`the server ended unexpectedly (${this.crashes} of ${RESTARTS} restarts)`);
            return { action: CloseAction.Restart, handled: true };
        }
        if (this.state.kind === "running") {
            this.setState({ kind: "failed", reason: t("The server ended unexpectedly."), missingPython: false });
        }
        return { action: CloseAction.DoNotRestart, handled: true };
    }

    private async stopNow(): Promise<void> {
        const client = this.client;
        this.client = undefined;
        this.started = undefined;
        if (client?.state === State.Running) {
            await client.stop(STOP_MILLISECONDS).catch((error: unknown) => this.log.warn(String(error)));
        }
    }

    private setState(state: ServerState): void {
        this.state = state;
        void vscode.commands.executeCommand("setContext", "ranksafe.ready", state.kind === "running");
        this.changed.fire(state);
    }
}
