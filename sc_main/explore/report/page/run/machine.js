// The machine in its four views, coloured by how busy its parts were: in what is timed, or in one slice of the run.
(function () {
  if (!data.views) return;
  const holder = section("machine", "The machine");
  const state = {view: "system", at: "", slice: -1, measure: "busiest, without commands"};
  const measures = {"busiest, without commands": null, "busiest": null};
  if (stats) measures["busiest, without commands"] = kClasses.slice(0, -1).flatMap(c => c.kinds).concat("dma_r", "dma_w", "tcm", "ipcq");
  if (stats) for (const c of kClasses) measures[c.name] = c.kinds;
  const controls = holder.select(".controls"), trail = controls.append("span").attr("class", "trail");
  if (stats) {
    choice(holder, "colour by", Object.keys(measures), name => { state.measure = name; paint(); }, state.measure);
    const label = controls.append("label").text("time");
    const slider = label.append("input").attr("type", "range").attr("id", "slice").attr("min", -1).attr("max", stats.slices - 1).attr("step", 1).property("value", -1);
    const output = label.append("output").attr("id", "slice-text");
    slider.on("input", function () { state.slice = +this.value; paint(); });
    controls.append("button").attr("type", "button").attr("id", "play").text("Play").on("click", function () {
      const button = d3.select(this);
      if (state.timer) { state.timer.stop(); state.timer = null; button.text("Play"); return; }
      button.text("Stop");
      state.timer = d3.interval(() => {
        state.slice = state.slice + 1 >= stats.slices ? -1 : state.slice + 1;
        slider.property("value", state.slice);
        paint();
        if (state.slice < 0) { state.timer.stop(); state.timer = null; button.text("Play"); }
      }, 80);
    });
    heatLegend(controls);
    state.output = output;
  }
  const renamed = (drawing, from, to) => from === to ? drawing : JSON.parse(JSON.stringify(drawing).split(`"${from}`).join(`"${to}`).split(` ${from}`).join(` ${to}`));
  /// The drawing of a part: its own, or that of a like one with the names changed.
  function drawing() {
    const views = data.views, words = state.at.split(".");
    if (state.view === "system") return views.system;
    if (state.view === "sip") return views.sips[state.at] || renamed(Object.values(views.sips)[0], Object.keys(views.sips)[0], state.at);
    if (state.view === "cube") {
      const like = views.cubes[state.at] ? state.at : Object.keys(views.cubes).find(name => name.split(".")[1] === words[1]) || Object.keys(views.cubes)[0];
      return renamed(views.cubes[like], like.split(".")[0] + ".", words[0] + ".");
    }
    const [like] = Object.keys(views.pes), pe = renamed(views.pes[like], like, state.at);
    const [, sip, cube] = state.at.match(/^(sip\d+)\.(cube\d+)\./), mesh = views.cubes["sip0." + cube];
    const port = mesh && mesh.lines.find(line => line.to === state.at.replace(sip + ".", "sip0."));
    return {...pe, subtitle: port ? "at " + port.from.replace("sip0.", sip + ".") : ""};
  }
  const below = {system: "sip", sip: "cube", cube: "pe"}, pattern = {sip: /^sip\d+$/, cube: /^sip\d+\.cube\d+$/, pe: /^sip\d+\.cube\d+\.pe\d+$/};
  function go(view, at) { state.view = view; state.at = at; draw(); }
  function within(name, id) { return name === id || name.startsWith(id + ".") || name.startsWith(id + "["); }
  /// Resources of a line: those that join its two ends.
  function joined(ends) {
    const [a, b] = ends.split(" ");
    const list = [];
    for (const i of stats.wired) {
      const from = stats.from[i], to = stats.to[i];
      if ((within(from, a) && within(to, b)) || (within(from, b) && within(to, a))) list.push(i);
    }
    return list;
  }
  if (stats) stats.wired = d3.range(stats.count).filter(i => stats.from[i] && stats.to[i]);
  const whole = opening === spans[0], means = [];
  /// Of the chosen slice, else of what the page opens on.
  function share(i) {
    if (state.slice >= 0 || whole) return stats.share(i, state.slice);
    if (means[i] === undefined) means[i] = stats.mean(i, opening.begin, opening.end);
    return means[i];
  }
  function level(list) {
    const kinds = measures[state.measure];
    let best = null;
    for (const i of list) {
      if (kinds && !kinds.includes(stats.kind(i))) continue;
      const value = share(i);
      if (best === null || value > best.value) best = {value, i};
    }
    return best;
  }
  let boxes = [], lines = [];
  function draw() {
    const plan = drawing(), at = new Map(plan.boxes.map(box => [box.id, box]));
    const left = d3.min(plan.boxes, b => b.x - b.w / 2) - 150, right = d3.max(plan.boxes, b => b.x + b.w / 2) + 150;
    const top = d3.min(plan.boxes, b => b.y - b.h / 2) - 60, bottom = d3.max(plan.boxes, b => b.y + b.h / 2) + 60;
    trail.selectAll("*").remove();
    const words = state.at ? state.at.split(".") : [], levels = ["system", "sip", "cube", "pe"];
    levels.slice(0, levels.indexOf(state.view) + 1).forEach((view, n) => trail.append("button").attr("type", "button").attr("class", "crumb")
      .text(n === 0 ? "system" : words[n - 1]).property("disabled", view === state.view).on("click", () => go(view, words.slice(0, n).join("."))));
    d3.select("#machine .chart").selectAll("*").remove();
    const svg = chart("#machine", right - left, bottom - top, plan.title, plan.subtitle).attr("viewBox", [left, top, right - left, bottom - top]).style("max-height", "640px");
    const lineGroup = svg.append("g"), container = box => box.style === "zone" || box.label_at < 0.2;
    const frames = svg.append("g");
    const path = line => {
      const a = at.get(line.from), b = at.get(line.to), length = Math.max(1, Math.hypot(b.x - a.x, b.y - a.y));
      return `M${a.x},${a.y} Q${(a.x + b.x) / 2 - (b.y - a.y) / length * line.bend},${(a.y + b.y) / 2 + (b.x - a.x) / length * line.bend} ${b.x},${b.y}`;
    };
    frames.lower();
    lines = plan.lines.map(line => ({line, list: stats ? joined(line.ends) : [], mark: lineGroup.append("path").attr("class", "wire").attr("d", path(line)).attr("fill", "none").attr("stroke", line.colour).attr("stroke-width", ["inter_sip", "ucie"].includes(line.kind) ? 5 : 3.5)}));
    boxes = plan.boxes.map(box => {
      const group = (container(box) ? frames : svg).append("g");
      const mark = group.append("rect").attr("class", "block").attr("x", box.x - box.w / 2).attr("y", box.y - box.h / 2).attr("width", box.w).attr("height", box.h).attr("rx", 4).attr("fill", box.fill).attr("stroke", box.stroke);
      const size = Math.max(7, Math.min(12, 1.7 * box.w / Math.max(1, box.label.length)));
      group.append("text").attr("x", container(box) ? box.x - box.w / 2 + 20 : box.x).attr("y", box.y - box.h / 2 + box.h * box.label_at + (box.note ? -3 : 4)).attr("text-anchor", "middle").attr("font-size", size).text(box.label);
      if (box.note) group.append("text").attr("x", box.x).attr("y", box.y + box.h * (box.label_at - 0.5) + 11).attr("text-anchor", "middle").attr("font-size", 10).attr("class", "soft").text(box.note);
      const inner = below[state.view];
      if (inner && pattern[inner].test(box.id)) group.attr("class", "opens").attr("tabindex", 0).attr("role", "button").attr("aria-label", "open " + box.id)
        .on("click", () => go(inner, box.id)).on("keydown", () => { if (d3.event.key === "Enter") go(inner, box.id); });
      // Ports of the stack share its channels.
      const id = box.style === "hbm" ? box.id.replace(/\.hbm.*$/, ".hbm") : box.id;
      const list = stats && box.style !== "outside" && box.style !== "zone" ? stats.under.get(id) || [] : [];
      return {box, list, mark, group};
    });
    for (const entry of [...boxes, ...lines]) {
      const name = entry.box ? entry.box.id : entry.line.ends.replace(" ", " - ");
      (entry.group || entry.mark).on("mousemove", () => {
        const best = stats && level(entry.list), words = [name, entry.line && entry.line.label || entry.box && entry.box.note || ""];
        if (best) words.push(`${percent(best.value)} busy: ${stats.names[best.i]}`, resourceTip(best.i));
        showTip(d3.event.clientX, d3.event.clientY, words.filter(Boolean).join("\n"));
      }).on("mouseleave", hideTip);
    }
    note("#machine", stats ? `${plan.title}: ${plan.subtitle}. A click on a part opens it. A part is coloured by the busiest resource in it, a line by the busier direction.` : `${plan.title}: ${plan.subtitle}. Without statistics nothing is coloured: run with --report.`);
    paint();
  }
  function paint() {
    if (!stats) return;
    state.output.text(state.slice < 0 ? opening.name : `${time(stats.begin(state.slice))} to ${time(stats.end(state.slice))}`);
    for (const {box, list, mark} of boxes) {
      const best = list.length ? level(list) : null;
      mark.attr("fill", best ? heat(best.value) : box.style === "zone" ? box.fill : "#ffffff").attr("data-busy", best ? best.value.toFixed(3) : null);
    }
    for (const {list, mark} of lines) {
      const best = list.length ? level(list) : null;
      mark.attr("stroke", best ? heat(best.value) : "#dfe3e8").attr("data-busy", best ? best.value.toFixed(3) : null);
    }
  }
  draw();
})();
