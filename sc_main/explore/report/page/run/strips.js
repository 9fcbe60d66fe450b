/// Rows of colours over time, which can be zoomed with the wheel and moved by dragging.
/// rows: {name, course: Uint8Array of slices, tip, say(value): of a slice, else how busy}; returns {set(rows), zoom(from_ps, to_ps)}.
function strips(holder, id, options) {
  const width = 1140, left = 250, high = 17, frame = holder.select(".chart").append("div").attr("class", "strips").style("max-height", options.height + "px");
  const canvas = frame.append("canvas").attr("id", id).attr("role", "img").attr("aria-label", options.label).attr("tabindex", 0).node();
  const axis = holder.select(".chart").append("svg").attr("viewBox", [0, 0, width, 28]);
  const status = holder.select(".chart").append("p").attr("class", "note").attr("role", "status");
  const full = d3.scaleLinear().domain([0, stats.time_ps]).range([left, width - 10]);
  let rows = [], x = full;
  function draw() {
    const ratio = Math.min(2, devicePixelRatio || 1), height = rows.length * high + 2, pen = canvas.getContext("2d");
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.aspectRatio = `${width} / ${height}`;
    pen.scale(ratio, ratio);
    pen.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    pen.textBaseline = "middle";
    const [from, to] = x.domain(), first = Math.max(0, Math.floor(from / stats.slice_ps)), last = Math.min(stats.slices - 1, Math.floor(to / stats.slice_ps));
    rows.forEach((row, r) => {
      pen.fillStyle = "#1d2733";
      pen.fillText(clipped(row.name, 38), 2, r * high + high / 2 + 1);
      for (let t = first; t <= last; ++t) {
        const begin = Math.max(left, x(stats.begin(t))), end = Math.min(width - 10, x(stats.end(t)));
        if (row.colour) {
          pen.fillStyle = "#eef1f5";
          pen.fillRect(begin, r * high + 1, end - begin + 0.5, high - 3);
          const tall = (high - 3) * row.course[t] / 255;
          pen.fillStyle = row.colour;
          pen.fillRect(begin, r * high + 1 + high - 3 - tall, end - begin + 0.5, tall);
        } else {
          pen.fillStyle = kHeat[row.course[t]];
          pen.fillRect(begin, r * high + 1, end - begin + 0.5, high - 3);
        }
      }
    });
    axis.selectAll("*").remove();
    axis.append("g").attr("class", "axis").attr("transform", "translate(0,2)").call(d3.axisBottom(x).ticks(8).tickFormat(time));
    status.text(`${rows.length} rows, ${time(from)} to ${time(to)} of ${time(stats.time_ps)}. The wheel zooms, dragging moves, a double click shows all.`);
  }
  const behaviour = d3.zoom().scaleExtent([1, Math.max(1, stats.slices / 4)]).translateExtent([[left, 0], [width - 10, 0]]).extent([[left, 0], [width - 10, 0]])
    .on("zoom", () => {
      x = d3.event.transform.rescaleX(full);
      draw();
      if (options.onRange) options.onRange(...x.domain().map(ps => Math.max(0, Math.min(stats.time_ps, Math.round(ps)))));
    });
  // The canvas may be shown larger or smaller than it is drawn.
  const place = event => { const box = canvas.getBoundingClientRect(); return [(event.clientX - box.left) * width / box.width, (event.clientY - box.top) * (rows.length * high + 2) / box.height]; };
  const reset = () => d3.select(canvas).call(behaviour.transform, d3.zoomIdentity);
  d3.select(canvas).call(behaviour).on("dblclick.zoom", reset).on("wheel.zoom", () => {
    const event = d3.event;
    event.preventDefault();
    d3.select(canvas).call(behaviour.scaleBy, Math.pow(2, -event.deltaY / 300), [place(event)[0], 0]);
  }).on("mousemove", () => {
    const event = d3.event, [px, py] = place(event), row = rows[Math.floor(py / high)];
    if (!row || px < left) return hideTip();
    const t = Math.max(0, Math.min(stats.slices - 1, Math.floor(x.invert(px) / stats.slice_ps)));
    showTip(event.clientX, event.clientY, `${row.name}\n${time(stats.begin(t))} to ${time(stats.end(t))}: ${row.say ? row.say(row.course[t]) : `${percent(row.course[t] / 255)} busy`}${row.tip ? "\n" + row.tip : ""}`);
  }).on("mouseleave", hideTip);
  canvas.addEventListener("keydown", event => {
    const factor = {"+": 1.5, "=": 1.5, "-": 1 / 1.5}[event.key], shift = {ArrowLeft: 60, ArrowRight: -60}[event.key];
    if (factor) d3.select(canvas).call(behaviour.scaleBy, factor);
    else if (shift) d3.select(canvas).call(behaviour.translateBy, shift, 0);
    else if (event.key === "0") reset();
    else return;
    event.preventDefault();
  });
  const zoom = (from, to) => {
    const k = Math.max(1, Math.min(stats.slices / 4, stats.time_ps / Math.max(1, to - from)));
    d3.select(canvas).call(behaviour.transform, d3.zoomIdentity.translate(left - k * full(from), 0).scale(k));
  };
  return {set(next) { rows = next; draw(); }, zoom};
}
/// What a tip says of a resource.
function resourceTip(i) {
  const waits = Object.entries(stats.waiting[i] || {}).filter(([, ps]) => ps > 0).map(([reason, ps]) => `waiting for ${reason} ${time(ps)}`);
  return [`whole run: busy ${percent(stats.utilisation[i])}`, stats.bytes[i] ? bytes(stats.bytes[i]) : "", ...waits, stats.high_water[i] || ""].filter(Boolean).join("\n");
}
