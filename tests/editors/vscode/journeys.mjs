// What a user does in VS Code, step by step. Each journey opens what it needs; they share the window, in this order.
import "./journeys/findings.mjs";
import "./journeys/rankFlow.mjs";
import "./journeys/runs.mjs";
import "./journeys/debugger.mjs";
import "./journeys/reports.mjs";
import "./journeys/onSave.mjs";
import "./journeys/fit.mjs";
import "./journeys/everyday.mjs";
import "./journeys/window.mjs";
