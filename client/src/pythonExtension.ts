import * as vscode from "vscode";

/** The part of the API of ms-python.python (stable since 2023.2) that is used here. */
interface PythonExtensionApi {
    readonly environments: {
        getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
        resolveEnvironment(environment: { readonly path: string }): Promise<{ readonly executable: { readonly uri?: vscode.Uri } } | undefined>;
        readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
    };
}

async function pythonExtension(): Promise<PythonExtensionApi | undefined> {
    const extension = vscode.extensions.getExtension<PythonExtensionApi>("ms-python.python");
    if (!extension) {
        return undefined;
    }
    try {
        const api = extension.isActive ? extension.exports : await extension.activate();
        return typeof api?.environments?.getActiveEnvironmentPath === "function" ? api : undefined;
    } catch {
        return undefined;
    }
}

/** The interpreter the user selected in the Python extension; undefined without that extension or a selection. */
export async function selectedInterpreter(): Promise<string | undefined> {
    const api = await pythonExtension();
    if (!api) {
        return undefined;
    }
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    const environment = await api.environments.resolveEnvironment(api.environments.getActiveEnvironmentPath(folder));
    return environment?.executable.uri?.fsPath;
}

/** Calls `listener` whenever another interpreter is selected in the Python extension. */
export async function onInterpreterSelected(listener: () => void): Promise<vscode.Disposable | undefined> {
    return (await pythonExtension())?.environments.onDidChangeActiveEnvironmentPath(listener);
}
