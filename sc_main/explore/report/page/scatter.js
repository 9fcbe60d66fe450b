// Any two columns against each other, with the Pareto front of the two.
(function () {
  const width = 1140, height = 520, margin = {top: 16, right: 210, bottom: 52, left: 84};
  if (!columns.length || !measured.length) return note("#scatter", "No point has figures.");
  // Two objectives against each other; a single one along the first axis of numbers.
  const axes = columns.filter(c => c.kind === "axis"), first = objectives[0] ?? metrics[0] ?? columns[0];
  const second = objectives[1] ?? axes.find(a => !isCategory(a)) ?? axes[0] ?? columns.find(c => c !== first) ?? first;
  const view = {x: second, y: first, colour: axes.find(a => a !== second) ?? null};
  picker("#scatter", "x", columns, view.x, choice => { view.x = choice; draw(); });
  picker("#scatter", "y", columns, view.y, choice => { view.y = choice; draw(); });
  picker("#scatter", "colour", [null, ...columns], view.colour, choice => { view.colour = choice; draw(); });

  /// Points that no other beats in both columns, from left to right. Axes have no goal, hence no front.
  function front(points) {
    if (view.x.kind !== "metric" || view.y.kind !== "metric" || view.x === view.y) return [];
    const cost = (column, point) => column.goal === "maximize" ? -column.of(point) : column.of(point);
    const order = points.slice().sort((a, b) => cost(view.x, a) - cost(view.x, b) || cost(view.y, a) - cost(view.y, b));
    const best = [];
    for (const point of order)
      if (!best.length || cost(view.y, point) < cost(view.y, best[best.length - 1])) best.push(point);
    return best;
  }

  function draw() {
    const points = measured.filter(point => view.x.of(point) !== null && view.y.of(point) !== null);
    const visible = points.filter(point => state.shown.has(point.index));
    const best = front(visible), onFront = new Set(best.map(point => point.index));
    const svg = chart("#scatter", width, height, `${view.y.name} against ${view.x.name}`,
      `${visible.length} points; ${best.length} of them on the Pareto front.`);
    const x = scaleOf(view.x, points, [margin.left, width - margin.right]);
    const y = scaleOf(view.y, points, [height - margin.bottom, margin.top]);
    drawAxis(svg.append("g").attr("transform", `translate(0,${height - margin.bottom})`), d3.axisBottom, view.x, x, points, 12);
    drawAxis(svg.append("g").attr("transform", `translate(${margin.left},0)`), d3.axisLeft, view.y, y, points, 9);
    svg.append("text").attr("class", "label").attr("x", (margin.left + width - margin.right) / 2).attr("y", height - 10)
      .attr("text-anchor", "middle").text(titled(view.x) + wanted(view.x));
    svg.append("text").attr("class", "label").attr("transform", `translate(18,${(margin.top + height - margin.bottom) / 2}) rotate(-90)`)
      .attr("text-anchor", "middle").text(titled(view.y) + wanted(view.y));
    if (best.length > 1)
      svg.append("path").attr("class", "front").attr("d", d3.line().x(p => x(view.x.of(p))).y(p => y(view.y.of(p)))
        .curve(view.x.goal === "maximize" ? d3.curveStepBefore : d3.curveStepAfter)(best));
    const colour = colouring(view.colour, points), rank = p => (state.chosen === p.index ? 2 : onFront.has(p.index) ? 1 : 0);
    const ordered = visible.slice().sort((a, b) => rank(a) - rank(b));  // what matters lies on top
    svg.append("g").selectAll("circle").data(ordered).enter().append("circle").attr("r", 4.5)
      .attr("class", p => "dot" + (onFront.has(p.index) ? " on-front" : "") + (state.chosen === p.index ? " chosen" : ""))
      .attr("cx", p => x(view.x.of(p))).attr("cy", p => y(view.y.of(p))).attr("fill", colour)
      .on("click", choose)
      .append("title").text(p => columns.map(c => `${titled(c)}: ${shown(c, p)}`).join("\n"));
    legend(svg, view.colour, points, width - margin.right + 24, margin.top + 16);
    if (best.length)
      note("#scatter", (best.length > 1 ? `The line is the Pareto front of the two figures: ${best.length} of ${visible.length} points shown. `
        : "One point is the best in both figures. ") + "A click on a point shows its configuration and command below.");
    else note("#scatter", `${visible.length} points shown. A click on one shows its configuration and command below.`);
  }
  const wanted = column => column.kind !== "metric" ? "" : column.goal === "maximize" ? ", larger is better" : ", smaller is better";
  state.listeners.push(draw);
  draw();
})();
