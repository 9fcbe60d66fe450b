// The course of every rank by class, of the parts of one cube, or of what is waited for most.
(function () {
  if (!stats) return;
  const holder = section("timeline", "Timeline");
  const view = strips(holder, "timeline-canvas", {height: 430, onRange: stats.onRange, label: "how busy the parts of the machine were over time"});
  const ranks = () => stats.ranks.slice(0, 64).flatMap(rank => kClasses.map((c, i) => ({name: `${rank.sip} ${c.name}`, course: rank.courses[i], colour: c.colour, tip: "its busiest part"}))
    .filter(row => row.course.some(value => value > 0)));
  const natural = (a, b) => a.localeCompare(b, "en", {numeric: true});
  const cubes = [...new Set([...stats.under.keys()].filter(name => /^sip\d+\.cube\d+$/.test(name)))].sort(natural);
  const parts = name => stats.under.get(name).filter(i => ["gemm", "math", "dma_r", "dma_w", "hbm_channel", "cpu", "ipcq", "tcm", "sram"].includes(stats.kind(i)))
    .sort((a, b) => natural(stats.names[a], stats.names[b])).slice(0, 400)
    .map(i => ({name: stats.names[i], course: stats.most([i]), colour: (kClasses[stats.classOf(i)] || {colour: "#7a5195"}).colour, tip: resourceTip(i)}));
  const kMostCubes = 256;
  const lists = new Map([["ranks", ranks], ["waiting", () => stats.waits], ["virtual channels", () => stats.channels]].filter(([, rows]) => rows().length > 0));
  choice(holder, "show", [...lists.keys(), ...cubes.slice(0, kMostCubes)], name => view.set((lists.get(name) || (() => parts(name)))()), "ranks");
  if (spans.length > 1) choice(holder, "time", spans.map(span => span.name), (_, i) => view.zoom(spans[i].begin, spans[i].end), opening.name);
  view.set(ranks());
  if (opening !== spans[0]) view.zoom(opening.begin, opening.end);
})();
