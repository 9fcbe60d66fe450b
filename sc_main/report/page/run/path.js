// The critical path: what the time of the run was made of, cause by cause.
(function () {
  const path = data.critical_path;
  if (!path) return;
  const holder = section("path", "Critical path").select(".chart");
  holder.append("pre").text(JSON.stringify(path, null, 2));
})();
