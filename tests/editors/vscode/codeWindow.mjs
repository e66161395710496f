// The journeys of who writes code. They share a window, in this order; those of `runWindow.mjs` have another beside it.
import "./journeys/findings.mjs";
import "./journeys/rankFlow.mjs";
import "./journeys/everyday.mjs";
import "./journeys/fit.mjs";
import "./journeys/window.mjs";
