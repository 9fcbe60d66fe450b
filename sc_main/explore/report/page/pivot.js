// Any figure over any two axes: a heat map of means.
(function () {
  const axes = columns.filter(c => c.kind === "axis");
  if (axes.length < 2 || !metrics.length || !measured.length) { d3.select("#pivot").remove(); return; }
  const view = {across: axes[1], down: axes[0], of: objectives[0] ?? metrics[0]};
  picker("#pivot", "across", axes, view.across, choice => { view.across = choice; draw(); });
  picker("#pivot", "down", axes, view.down, choice => { view.down = choice; draw(); });
  picker("#pivot", "mean of", metrics, view.of, choice => { view.of = choice; draw(); });
  const kMost = 40;
  function draw() {
    const points = measured.filter(p => state.shown.has(p.index) && view.of.of(p) !== null);
    const values = axis => [...new Set(points.map(axis.of))].filter(v => v !== null).sort((a, b) => a - b).slice(0, kMost);
    const across = values(view.across), down = values(view.down), cells = new Map();
    for (const p of points) {
      const key = view.down.of(p) + " " + view.across.of(p);
      if (!cells.has(key)) cells.set(key, []);
      cells.get(key).push(p);
    }
    const left = 190, top = 30, width = 1140, cell = Math.max(22, Math.min(120, (width - left - 20) / Math.max(1, across.length))), high = 26;
    const svg = chart("#pivot", width, top + down.length * high + 56, `${view.of.name} by ${view.down.name} and ${view.across.name}`, `${cells.size} cells`);
    const means = new Map([...cells].map(([key, list]) => [key, d3.mean(list, view.of.of)]));
    const [low, most] = d3.extent([...means.values()]), logarithmic = view.of.scale === "log" && low > 0;
    const place = logarithmic ? d3.scaleLog().domain([low, most]).range([0, 1]) : d3.scaleLinear().domain([low, most]).range([0, 1]);
    const share = value => low === most ? 0.5 : place(value), name = (axis, value) => shown(axis, points.find(p => axis.of(p) === value));
    down.forEach((d, r) => {
      svg.append("text").attr("x", left - 8).attr("y", top + r * high + 17).attr("text-anchor", "end").text(clipped(name(view.down, d), 26));
      across.forEach((a, c) => {
        const key = d + " " + a, mean = means.get(key);
        if (mean === undefined) return;
        const group = svg.append("g").attr("transform", `translate(${left + c * cell},${top + r * high})`), u = share(mean);
        group.append("rect").attr("class", "cell").attr("width", cell - 1).attr("height", high - 1).attr("fill", d3.interpolateViridis(0.08 + 0.87 * u)).on("click", () => choose(cells.get(key)[0]))
          .append("title").text(`${titled(view.down)} ${name(view.down, d)}, ${titled(view.across)} ${name(view.across, a)}\n${titled(view.of)}: ${figure(mean)}, mean of ${cells.get(key).length}`);
        if (cell >= 44) group.append("text").attr("x", cell / 2).attr("y", 17).attr("text-anchor", "middle").attr("pointer-events", "none").style("fill", u > 0.6 ? "#111" : "#fff").text(clipped(figure(mean), Math.floor(cell / 7)));
      });
    });
    // As many names as fit beside each other.
    const each = Math.ceil(d3.max(across, a => clipped(name(view.across, a), 14).length, 1) * 7.5 / cell) || 1;
    across.forEach((a, c) => { if (c % each === 0) svg.append("text").attr("x", left + (c + 0.5) * cell).attr("y", top + down.length * high + 16).attr("text-anchor", "middle").text(clipped(name(view.across, a), 14)); });
    svg.append("text").attr("class", "label").attr("x", left + across.length * cell / 2).attr("y", top + down.length * high + 42).attr("text-anchor", "middle").text(titled(view.across));
    svg.append("text").attr("class", "label").attr("x", left - 8).attr("y", 16).attr("text-anchor", "end").text(titled(view.down));
    note("#pivot", `${titled(view.of)}: mean of the points shown, ${figure(low)} to ${figure(most)}${logarithmic ? ", logarithmic" : ""}. A click on a cell shows its first point below.`);
  }
  state.listeners.push(draw);
  draw();
})();
