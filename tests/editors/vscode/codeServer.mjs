// One code-server for all journeys, with its own home, user data and extensions in a temporary folder.
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

function freePort() {
    return new Promise((resolve, reject) => {
        const server = createServer();
        server.on("error", reject);
        server.listen(0, "127.0.0.1", () => {
            const { port } = server.address();
            server.close(() => resolve(port));
        });
    });
}

export class CodeServer {
    /** @param {{node: string, entry: string, state: string, searchPath?: string}} options `searchPath`: a PATH of its own */
    constructor({ node, entry, state, searchPath }) {
        this.node = node;
        this.searchPath = searchPath;
        this.entry = entry;
        this.state = state;
        this.userData = join(state, "user-data");
        this.home = join(state, "home");
        this.output = [];
        for (const folder of ["home", "user-data/User", "user-data/Machine", "extensions"]) {
            mkdirSync(join(state, folder), { recursive: true });
        }
        writeFileSync(join(state, "config.yaml"), "auth: none\n");
        if (searchPath) {
            // Extensions get the environment of a login shell, whatever that of the server is.
            writeFileSync(join(state, "home/.profile"), `PATH='${searchPath}'\nexport PATH\n`);
        }
    }

    environment() {
        const kept = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(VSCODE|XDG|npm_|NODE_)/i.test(name)));
        return { ...kept, HOME: this.home, EXTENSIONS_GALLERY: '{"serviceUrl":""}', ...this.searchVariables() };
    }

    searchVariables() {
        return this.searchPath ? { PATH: this.searchPath, SHELL: "/bin/sh" } : { PATH: `${dirname(this.node)}:${process.env.PATH}` };
    }

    arguments() {
        const folders = ["--config", join(this.state, "config.yaml"), "--user-data-dir", this.userData, "--extensions-dir", join(this.state, "extensions")];
        return [this.entry, ...folders, "--auth", "none", "--disable-telemetry", "--disable-update-check", "--disable-getting-started-override", "--ignore-last-opened"];
    }

    install(...packages) {
        const wanted = packages.flatMap((each) => ["--install-extension", each]);
        execFileSync(this.node, [...this.arguments(), ...wanted], { env: this.environment(), stdio: ["ignore", "ignore", "inherit"] });
    }

    /** Settings of the user (`User`) or of the machine that runs the extension (`Machine`), for windows opened from now on. */
    writeSettings(scope, settings) {
        writeFileSync(join(this.userData, scope, "settings.json"), JSON.stringify(settings, undefined, 4));
    }

    /** The simulated devices that were compiled before: a minute of the processor for each environment. */
    shareCompiledDevices() {
        const base = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
        const compiled = join(base, "ranksafe", "native");
        const here = join(this.home, ".cache", "ranksafe");
        for (const folder of [compiled, here]) {
            mkdirSync(folder, { recursive: true });
        }
        symlinkSync(compiled, join(here, "native"));
    }

    async start() {
        this.port = await freePort();
        const options = { env: this.environment(), stdio: ["ignore", "pipe", "pipe"], detached: true };
        this.process = spawn(this.node, [...this.arguments(), "--bind-addr", `127.0.0.1:${this.port}`], options);
        // In a group of its own, which goes whenever this process does.
        process.once("exit", () => this.signal("SIGKILL"));
        const listening = new Promise((resolve, reject) => {
            for (const stream of [this.process.stdout, this.process.stderr]) {
                createInterface({ input: stream }).on("line", (line) => {
                    this.output.push(line);
                    if (line.includes("HTTP server listening on")) {
                        resolve();
                    }
                });
            }
            this.process.on("exit", (code) => reject(new Error(`code-server ended with ${code}:\n${this.output.join("\n")}`)));
        });
        await listening;
    }

    /** The address of the workbench with `folder` and, if given, `file` open. */
    address(folder, file) {
        const payload = file ? `&payload=${encodeURIComponent(JSON.stringify([["openFile", `vscode-remote://127.0.0.1:${this.port}${file}`]]))}` : "";
        return `http://127.0.0.1:${this.port}/?folder=${encodeURIComponent(folder)}${payload}`;
    }

    signal(name) {
        try {
            process.kill(-this.process.pid, name);
        } catch {
            // Nothing of the group is left.
        }
    }

    async stop() {
        if (!this.process || this.process.exitCode !== null) {
            return;
        }
        const ended = new Promise((resolve) => this.process.once("exit", resolve));
        this.signal("SIGTERM");
        const insist = setTimeout(() => this.signal("SIGKILL"), 10_000);
        await ended;
        clearTimeout(insist);
    }
}
