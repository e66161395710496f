// Attaches where debugpy listens, with no adapter of its own.
const vscode = require("vscode");

exports.activate = (context) => {
    const createDebugAdapterDescriptor = ({ configuration: { connect } }) => new vscode.DebugAdapterServer(connect.port, connect.host);
    context.subscriptions.push(vscode.debug.registerDebugAdapterDescriptorFactory("debugpy", { createDebugAdapterDescriptor }));
};
