// One vertical line per column, one thread per point; dragging along a line keeps the points within.
(function () {
  const width = 1140, height = 430, margin = {top: 64, right: 60, bottom: 22, left: 60};
  if (!measured.length) return note("#parallel", "No point has figures.");
  const lines = columns.filter(c => c.kind === "axis" || c.objective || !objectives.length);
  const view = {colour: objectives[0] ?? metrics[0] ?? null};
  picker("#parallel", "colour", [null, ...columns], view.colour, choice => { view.colour = choice; draw(); });
  const controls = d3.select("#parallel .controls");
  const clear = controls.append("button").attr("type", "button").text("Show all points");
  const count = controls.append("span").attr("role", "status");
  let kept = new Map(), drawing = false;  // column -> [top, bottom] of its brush

  const x = d3.scalePoint().domain(d3.range(lines.length)).range([margin.left, width - margin.right]).padding(0.2);
  const scales = lines.map(column => scaleOf(column, measured, [height - margin.bottom, margin.top]));
  const place = (i, point) => lines[i].of(point) === null ? height - margin.bottom : scales[i](lines[i].of(point));

  function filter() {
    state.shown = new Set(measured.filter(point => [...kept].every(([i, [top, bottom]]) => {
      const at = place(i, point);
      return lines[i].of(point) !== null && at >= top && at <= bottom;
    })).map(point => point.index));
    changed();
  }
  function draw() {
    drawing = true;
    const svg = chart("#parallel", width, height, "Parallel coordinates of axes and objectives",
      `${lines.length} columns; ${state.shown.size} of ${measured.length} points kept.`);
    const colour = colouring(view.colour, measured);
    const threads = svg.append("g");
    const room = Math.max(10, Math.floor((width - margin.left - margin.right) / lines.length / 7.2));
    lines.forEach((column, i) => {
      const group = svg.append("g").attr("transform", `translate(${x(i)},0)`);
      drawAxis(group.append("g"), d3.axisLeft, column, scales[i], measured, 8);
      const name = group.append("text").attr("class", "label").attr("text-anchor", "middle");
      name.attr("y", margin.top - 12 - 15 * (wrapped(name, titled(column), room) - 1));
      const brush = d3.brushY().extent([[-14, margin.top], [14, height - margin.bottom]]).on("end", () => {
        if (drawing) return;  // put back as it was, not moved by the user
        if (d3.event.selection) kept.set(i, d3.event.selection); else kept.delete(i);
        filter();
      });
      const held = group.append("g").attr("class", "brush").call(brush);
      if (kept.has(i)) held.call(brush.move, kept.get(i));
    });
    const line = d3.line().x((_, i) => x(i)).y((_, i) => 0);
    const path = point => line.y((_, i) => place(i, point))(lines);
    const order = measured.slice().sort((a, b) => rank(a) - rank(b));
    const opacity = Math.max(0.15, Math.min(0.8, 60 / Math.max(1, state.shown.size) + 0.15));
    threads.selectAll("path").data(order).enter().append("path").attr("d", path)
      .attr("class", p => "thread" + (state.shown.has(p.index) ? "" : " faded") + (p.index === state.chosen ? " chosen" : ""))
      .attr("stroke", p => state.shown.has(p.index) ? colour(p) : null)
      .attr("stroke-opacity", p => state.shown.has(p.index) ? opacity : null);
    count.text(`${state.shown.size} of ${measured.length} points shown`);
    note("#parallel", "Drag along a line to keep the points within; a click on it lets go. The scatter and the list follow." +
      (view.colour ? ` Colour: ${titled(view.colour)}, dark is low.` : ""));
    drawing = false;
  }
  const rank = point => point.index === state.chosen ? 2 : state.shown.has(point.index) ? 1 : 0;
  clear.on("click", () => { kept = new Map(); filter(); });
  state.listeners.push(draw);
  draw();
})();
