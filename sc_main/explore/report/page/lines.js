// A figure along an axis, one line for each value of another one.
(function () {
  const axes = columns.filter(c => c.kind === "axis"), numeric = axes.filter(a => !isCategory(a));
  if (!numeric.length || !metrics.length || !measured.length) { d3.select("#lines").remove(); return; }
  const view = {x: numeric[0], y: objectives[0] ?? metrics[0], series: axes.find(a => a !== numeric[0]) ?? null};
  picker("#lines", "along", numeric, view.x, choice => { view.x = choice; draw(); });
  picker("#lines", "mean of", metrics, view.y, choice => { view.y = choice; draw(); });
  picker("#lines", "a line for each", [null, ...axes], view.series, choice => { view.series = choice; draw(); });
  const width = 1140, height = 460, margin = {top: 16, right: 210, bottom: 52, left: 84}, kMostLines = 24;
  function draw() {
    const points = measured.filter(p => state.shown.has(p.index) && view.x.of(p) !== null && view.y.of(p) !== null);
    const lines = new Map();
    for (const p of points) {
      const key = view.series ? view.series.of(p) : 0;
      if (!lines.has(key)) lines.set(key, []);
      lines.get(key).push(p);
    }
    const keys = [...lines.keys()].sort((a, b) => a - b).slice(0, kMostLines);
    const svg = chart("#lines", width, height, `${view.y.name} along ${view.x.name}`, `${keys.length} lines`);
    const x = scaleOf(view.x, points, [margin.left, width - margin.right]), y = scaleOf(view.y, points, [height - margin.bottom, margin.top]);
    drawAxis(svg.append("g").attr("transform", `translate(0,${height - margin.bottom})`), d3.axisBottom, view.x, x, points, 12);
    drawAxis(svg.append("g").attr("transform", `translate(${margin.left},0)`), d3.axisLeft, view.y, y, points, 9);
    svg.append("text").attr("class", "label").attr("x", (margin.left + width - margin.right) / 2).attr("y", height - 10).attr("text-anchor", "middle").text(titled(view.x));
    svg.append("text").attr("class", "label").attr("transform", `translate(18,${(margin.top + height - margin.bottom) / 2}) rotate(-90)`).attr("text-anchor", "middle").text(titled(view.y));
    const colour = colouring(view.series, points);
    for (const key of keys) {
      const list = lines.get(key), at = [...new Set(list.map(view.x.of))].sort((a, b) => a - b);
      const course = at.map(value => [value, d3.mean(list.filter(p => view.x.of(p) === value), view.y.of)]);
      svg.append("path").attr("class", "series").attr("fill", "none").attr("stroke", colour(list[0])).attr("stroke-width", 2)
        .attr("d", d3.line().x(c => x(c[0])).y(c => y(c[1]))(course)).append("title").text(view.series ? `${titled(view.series)}: ${shown(view.series, list[0])}` : view.y.name);
    }
    legend(svg, view.series, points, width - margin.right + 24, margin.top + 16);
    note("#lines", `Means over what the axes do not tell apart, of ${points.length} points shown${lines.size > kMostLines ? `; the first ${kMostLines} of ${lines.size} lines` : ""}.`);
  }
  state.listeners.push(draw);
  draw();
})();
