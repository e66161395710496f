(() => {
    "use strict";
    const plots = [...document.querySelectorAll("script.plot-data")].flatMap((each) => JSON.parse(each.textContent));
    const chinese = document.getElementById("language-zh-cn");
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
        drawn = plots.map(({ id, unit, top, bound, x, xUnit, series, stacked, marks }) => {
            const place = document.getElementById(id);
            // The lowest layer is drawn last, over those that hold it; its legend tells its own size.
            const heights = series.map(({ values }) => values);
            const shown = stacked ? heights.map((_, index) => x.map((_, at) => heights.slice(index).reduce((sum, each) => sum + each[at], 0))) : heights;
            const own = (index) => (plot, value, of, at) => (at === null || heights[index][at] === null ? "--" : `${Number(heights[index][at].toFixed(2))} ${unit}`);
            const axis = { stroke: ink, grid, ticks: grid, font: "12px system-ui, sans-serif" };
            return new uPlot(
                {
                    width: Math.max(280, place.clientWidth),
                    height: 230,
                    scales: { x: { time: false }, y: { range: (plot, low, high) => [0, Math.max(top, high * 1.05) || 1] } },
                    axes: [
                        { ...axis, values: (plot, values) => values.map((value) => `${value} ${xUnit}`) },
                        { ...axis, size: 64, values: (plot, values) => values.map((value) => `${value} ${unit}`) },
                    ],
                    series: [
                        { label: xUnit || "#" },
                        ...series.map(({ label, zh }, index) => {
                            const color = colors[index % colors.length];
                            const name = (chinese.checked && zh) || label;
                            return { label: name, stroke: color, fill: stacked ? color : undefined, width: stacked ? 0 : 1.5, value: own(index), spanGaps: true, points: { show: x.length < 3 } };
                        }),
                    ],
                    hooks: { draw: [(plot) => drawMarks(plot, marks, bound, ink)] },
                },
                [x, ...shown],
                place,
            );
        });
    }

    /** A line down at each place, with its word at the top, and one across where the scale reaches the bound. */
    function drawMarks({ ctx, bbox, scales, valToPos }, marks, bound, ink) {
        ctx.save();
        ctx.strokeStyle = ctx.fillStyle = ink;
        ctx.textAlign = "right";
        for (const { at, label, zh } of marks) {
            const left = Math.round(valToPos(at, "x", true)) + 0.5;
            ctx.beginPath();
            ctx.moveTo(left, bbox.top);
            ctx.lineTo(left, bbox.top + bbox.height);
            ctx.stroke();
            ctx.fillText((chinese.checked && zh) || label, left - 4, bbox.top + 12 * devicePixelRatio);
        }
        if (bound <= scales.y.max) {
            ctx.fillRect(bbox.left, Math.round(valToPos(bound, "y", true)), bbox.width, 2 * devicePixelRatio);
        }
        ctx.restore();
    }

    draw();
    document.querySelector(".switch").addEventListener("change", draw);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    matchMedia("print").addEventListener("change", draw);
    addEventListener("resize", draw);
    new MutationObserver(draw).observe(document.body, { attributes: true, attributeFilter: ["class"] });
})();
