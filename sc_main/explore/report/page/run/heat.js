// Links and routers over time, the busiest first.
(function () {
  if (!stats) return;
  const kinds = {"links and routers": ["link", "ucie", "pcie", "router_port"], "links between SIPs": ["link"], "UCIe": ["ucie"], "router ports": ["router_port"], "HBM channels": ["hbm_channel"]};
  const kMost = 200, has = name => stats.names.some((_, i) => kinds[name].includes(stats.kind(i)));
  const names = Object.keys(kinds).filter(has);
  if (!names.length) return;
  const holder = section("heat", "Links and routers");
  const view = strips(holder, "heat-canvas", {height: 430, label: "how busy links and router ports were over time"});
  heatLegend(holder.select(".controls"));
  function show(name) {
    const list = d3.range(stats.count).filter(i => kinds[name].includes(stats.kind(i)))
      .map(i => [i, opening === spans[0] ? stats.utilisation[i] : stats.mean(i, opening.begin, opening.end)]).sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, kMost);
    view.set(list.map(([i, busy]) => ({name: `${stats.names[i]}  ${percent(busy)}`, course: stats.most([i]), tip: (stats.from[i] ? `${stats.from[i]} to ${stats.to[i]}\n` : "") + resourceTip(i)})));
  }
  choice(holder, "show", names, show, names[0]);
  show(names[0]);
  note("#heat", `Per cent and order: ${opening.name}.`);
  if (opening !== spans[0]) view.zoom(opening.begin, opening.end);
})();
