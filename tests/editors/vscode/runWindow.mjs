// The journeys of who runs scripts. They share a window, in this order; those of `codeWindow.mjs` have another beside it.
import "./journeys/runs.mjs";
import "./journeys/debugger.mjs";
import "./journeys/reports.mjs";
import "./journeys/onSave.mjs";
