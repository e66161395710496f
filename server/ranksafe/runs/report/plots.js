(() => {
    "use strict";
    const data = JSON.parse(document.getElementById("gpu-samples").textContent);
    const palettes = {
        light: ["#1f5fbf", "#c0562b", "#1a7f37", "#8250df", "#9a6700", "#0e7c86", "#bf3989", "#57606a"],
        dark: ["#7fb0ff", "#f0956a", "#57c777", "#c297ff", "#e2b340", "#4fc3cf", "#f778ba", "#a3abb5"],
    };
    let drawn = [];

    function draw() {
        for (const plot of drawn) {
            plot.destroy();
        }
        const style = getComputedStyle(document.body);
        const dark = style.colorScheme === "dark" || (style.colorScheme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
        const printing = matchMedia("print").matches;
        const colors = palettes[dark && !printing ? "dark" : "light"];
        const ink = dark && !printing ? "#a3abb5" : "#5c6570";
        const grid = { stroke: dark && !printing ? "#3a3f47" : "#e3e6ea", width: 1 };
        drawn = data.plots.map(({ id, unit, top, series }) => {
            const place = document.getElementById(id);
            const axis = { stroke: ink, grid, ticks: grid, font: "12px system-ui, sans-serif" };
            return new uPlot(
                {
                    width: Math.max(280, place.clientWidth),
                    height: 230,
                    scales: { x: { time: false }, y: { range: (plot, low, high) => [0, Math.max(top, high * 1.05) || 1] } },
                    axes: [
                        { ...axis, values: (plot, values) => values.map((value) => `${value} s`) },
                        { ...axis, size: 64, values: (plot, values) => values.map((value) => `${value} ${unit}`) },
                    ],
                    series: [
                        { label: "s" },
                        ...series.map((label, index) => ({ label, stroke: colors[index % colors.length], width: 1.5, spanGaps: true, points: { show: data.times.length < 3 } })),
                    ],
                },
                [data.times, ...data.values[id]],
                place,
            );
        });
    }

    draw();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    matchMedia("print").addEventListener("change", draw);
    addEventListener("resize", draw);
    new MutationObserver(draw).observe(document.body, { attributes: true, attributeFilter: ["class"] });
})();
