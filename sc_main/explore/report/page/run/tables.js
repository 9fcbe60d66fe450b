// The rows of the result, energy, known errors, the configuration.
(function () {
  const run = data.run;
  if (!run) return;
  const rows = run.results || [];
  if (rows.length) {
    const holder = section("results", "Results").select(".chart"), groups = new Map();
    for (const row of rows) {
      const keys = Object.keys(row).filter(key => typeof row[key] !== "object" || row[key] === null), name = keys.join(" ");
      if (!groups.has(name)) groups.set(name, {keys, rows: []});
      groups.get(name).rows.push(row);
    }
    for (const group of groups.values()) table(holder, null, group.keys.map(key => [key, group.rows.some(row => typeof row[key] === "number")]), group.rows.slice(0, 200).map(row => group.keys.map(key => said(row[key]))));
  }
  const errors = run.fidelity_errors || [];
  if (errors.length) table(section("errors", "Known errors of the grade").select(".chart"), `fidelity ${run.fidelity}`, [["part"], ["grade"], ["measured as"], ["largest error", 1]],
    errors.map(e => [e.part, e.grade, e.measure, e.max_error_percent === null ? "not measured" : e.max_error_percent + "%"]));
  const energy = (run.energy || []).filter(e => e.dynamic_pj + e.static_pj > 0);
  if (energy.length) table(section("energy", "Energy").select(".chart"), `${figure(run.energy_pj / 1e6)} uJ`, [["component"], ["dynamic (uJ)", 1], ["static (uJ)", 1], ["share", 1]],
    energy.slice().sort((a, b) => b.dynamic_pj + b.static_pj - a.dynamic_pj - a.static_pj).map(e => [e.component, figure(e.dynamic_pj / 1e6), figure(e.static_pj / 1e6), percent((e.dynamic_pj + e.static_pj) / run.energy_pj)]));
  const config = section("configuration", "Configuration").select(".chart");
  config.append("p").attr("class", "note").text(`Configuration ${run.config_hash}, seed ${run.seed}. The result file runs again with 'kernbench run --from FILE'.`);
  config.append("pre").text(JSON.stringify(data.config, null, 2));
})();
document.body.dataset.drawn = "yes";
