// The list of points, and what is known of the chosen one.
(function () {
  const page = 100;
  const view = {sort: null, up: true, from: 0, failed: false};
  const controls = d3.select("#points .controls");
  const status = controls.append("span").attr("role", "status");
  const back = controls.append("button").attr("type", "button").text("Previous").on("click", () => { view.from -= page; draw(); });
  const on = controls.append("button").attr("type", "button").text("Next").on("click", () => { view.from += page; draw(); });
  const without = study.points.length - measured.length;
  if (without) {
    const label = controls.append("label");
    label.append("input").attr("type", "checkbox").on("change", function () { view.failed = this.checked; view.from = 0; draw(); });
    label.append("span").text(`only the ${without} without figures`);
  }
  const best = new Set(study.front);
  const fields = [
    {name: "point", text: p => p.key.slice(0, 10), by: p => p.index},
    {name: "status", text: p => best.has(p.index) ? "ok, on the front" : p.status, by: p => (best.has(p.index) ? 0 : p.status === "ok" ? 1 : 2)},
    ...columns.filter(c => c.kind !== "metric" || c.objective || !objectives.length).map(c => ({name: titled(c), text: p => shown(c, p), by: c.of, num: !isCategory(c)}))];

  function rows() {
    let list = study.points.filter(p => view.failed ? p.status !== "ok" : p.status !== "ok" || state.shown.has(p.index));
    if (view.sort === null) return list;
    const by = fields[view.sort].by, sign = view.up ? 1 : -1;
    return list.slice().sort((a, b) => {
      const [u, v] = [by(a), by(b)];
      if (u === null || v === null) return (u === null) - (v === null) || a.index - b.index;
      return sign * (u - v) || a.index - b.index;
    });
  }
  function draw() {
    const list = rows();
    view.from = Math.max(0, Math.min(view.from, Math.floor(Math.max(0, list.length - 1) / page) * page));
    const part = list.slice(view.from, view.from + page);
    status.text(list.length ? `${view.from + 1} to ${view.from + part.length} of ${list.length} points` : "no points");
    back.property("disabled", view.from === 0);
    on.property("disabled", view.from + page >= list.length);
    const holder = d3.select("#table");
    holder.selectAll("*").remove();
    const table = holder.append("table").attr("class", "points");
    table.append("thead").append("tr").selectAll("th").data(fields).enter().append("th").attr("scope", "col").attr("class", f => f.num ? "num" : null)
      .attr("aria-sort", (_, i) => view.sort !== i ? "none" : view.up ? "ascending" : "descending")
      .append("button").attr("type", "button").text((f, i) => f.name + (view.sort !== i ? "" : view.up ? " \u25b2" : " \u25bc"))
      .on("click", (_, i) => { view.up = view.sort === i ? !view.up : true; view.sort = i; view.from = 0; draw(); });
    const body = table.append("tbody").selectAll("tr").data(part).enter().append("tr").attr("tabindex", 0)
      .attr("class", p => p.index === state.chosen ? "chosen" : null).on("click", choose)
      .on("keydown", p => { if (d3.event.key === "Enter") choose(p); });
    body.selectAll("td").data(p => fields.map(f => ({p, f}))).enter().append("td")
      .attr("class", d => d.f.num ? "num" : d.f.name === "status" && d.p.status !== "ok" ? "error" : null)
      .text(d => d.f.text(d.p));
  }
  function pairs(holder, caption, entries) {
    if (!entries.length) return;
    const table = holder.append("table").attr("class", "plain");
    table.append("caption").text(caption);
    const rows = table.append("tbody").selectAll("tr").data(entries).enter().append("tr");
    rows.append("th").attr("scope", "row").text(e => e[0]);
    rows.append("td").text(e => e[1]);
  }
  /// The configuration of a point: the common one with the point's own values put in.
  function configuration(point) {
    const merge = (base, patch) => {
      if (patch === null || typeof patch !== "object" || Array.isArray(patch)) return patch;
      const out = base !== null && typeof base === "object" && !Array.isArray(base) ? {...base} : {};
      for (const [key, value] of Object.entries(patch)) if (value === null) delete out[key]; else out[key] = merge(out[key], value);
      return out;
    };
    return merge(study.config, point.config);
  }
  function flat(value, path = "", out = []) {
    if (value !== null && typeof value === "object" && !Array.isArray(value))
      for (const [key, inner] of Object.entries(value)) flat(inner, path ? path + "." + key : key, out);
    else out.push([path, typeof value === "string" ? value : JSON.stringify(value)]);
    return out;
  }
  function detail() {
    const holder = d3.select("#point");
    holder.selectAll("*").remove();
    const point = state.chosen === null ? null : study.points[state.chosen];
    if (!point) return holder.append("p").attr("class", "note").text("Choose a point, here or in a chart, to see its configuration and the command that reproduces it.");
    holder.append("h3").text(`Point ${point.key}`);
    if (point.error) holder.append("p").attr("class", "error").text(`${point.status}${point.exit_code ? `, exit code ${point.exit_code}` : ""}: ${point.error}`);
    if (point.command) {
      holder.append("div").text("Reproduce it with");
      holder.append("pre").attr("class", "command").text(point.command);
      holder.append("button").attr("type", "button").text("Copy the command").on("click", function () {
        const range = document.createRange();
        range.selectNodeContents(holder.select("pre.command").node());
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        d3.select(this).text(document.execCommand("copy") ? "Copied" : "Marked: copy it by hand");
      });
    }
    const base = state.base === null ? null : study.points[state.base];
    holder.append("button").attr("type", "button").attr("id", "against").text(base ? "Compare with no other point" : "Compare other points with this one")
      .on("click", () => { state.base = base ? null : point.index; choose(point); });
    if (base && base !== point) difference(holder, base, point, configuration, flat);
    const both = holder.append("div").attr("class", "columns");
    pairs(both.append("div"), "Axes", columns.filter(c => c.kind !== "metric").map(c => [c.name, c.label(point)]));
    pairs(both.append("div"), "Figures", metrics.filter(m => m.of(point) !== null).map(m => [titled(m), figure(m.of(point))]));
    energyTables(both, point);
    const whole = configuration(point);
    if (whole !== null && typeof whole === "object" && Object.keys(whole).length) {
      const own = flat(point.config).filter(([path]) => path);
      if (own.length) pairs(both.append("div"), "Configuration, where it differs from the first point", own);
      const more = holder.append("details");
      more.append("summary").text("Whole configuration");
      more.append("pre").text(JSON.stringify(whole, null, 2));
    }
  }
  function linked() {
    const match = /^#point=([^&]+)(?:&against=(.+))?$/.exec(location.hash);
    const point = match && study.points.find(p => p.key === match[1]);
    if (!point) return;
    const base = study.points.find(p => p.key === match[2]);
    state.base = base ? base.index : null;
    choose(point);
    document.getElementById("point").scrollIntoView();
  }
  state.listeners.push(draw, detail);
  draw();
  detail();
  linked();
  addEventListener("hashchange", linked);
  document.documentElement.dataset.drawn = "yes";
})();
