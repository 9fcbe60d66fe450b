// The critical path: what the time was made of, cause by cause; as the result has it, a table for each of its lists.
(function () {
  const path = data.critical_path;
  if (!path) return;
  const holder = section("path", "Critical path").select(".chart"), kMostRows = 200;
  const value = (key, v) => typeof v === "number" ? key.endsWith("_ps") ? time(v) : key.endsWith("_ns") ? nanoseconds(v) : /share|fraction/.test(key) ? percent(v) : figure(v) : said(v);
  function show(name, node) {
    if (Array.isArray(node) && node.length && typeof node[0] === "object") {
      const keys = [...new Set(node.flatMap(one => Object.keys(one)))].filter(key => !node.some(one => one[key] !== null && typeof one[key] === "object"));
      table(holder, name, keys.map(key => [key, node.some(one => typeof one[key] === "number")]), node.slice(0, kMostRows).map(one => keys.map(key => value(key, one[key]))));
      node.forEach((one, i) => { for (const key of Object.keys(one)) if (one[key] !== null && typeof one[key] === "object") show(`${name} ${one.name || i + 1}: ${key}`, one[key]); });
    } else if (node !== null && typeof node === "object" && !Array.isArray(node)) {
      const plain = Object.keys(node).filter(key => node[key] === null || typeof node[key] !== "object");
      if (plain.length) table(holder, name, [[""], ["", 1]], plain.map(key => [key, value(key, node[key])]));
      for (const key of Object.keys(node)) if (node[key] !== null && typeof node[key] === "object") show(name ? `${name}: ${key}` : key, node[key]);
    }
  }
  show("", path);
})();
