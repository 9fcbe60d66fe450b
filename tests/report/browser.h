#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/support/test_folder.h"

namespace kernbench {

inline std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

/// A page in a real browser: the document after its scripts ran, and what they wrote to the console.
struct Rendered {
  std::string dom, log;
  bool quiet() const { return log.find("CONSOLE") == std::string::npos; }
};
inline Rendered render_in_browser(const TestFolder& folder, const std::string& page, const std::string& fragment = "") {
  const std::string file = folder.file("report.html");
  std::ofstream(file, std::ios::binary) << page;
  const std::string command =
      "'" KERNBENCH_CHROMIUM
      "' --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
      "--disable-component-update --disable-sync --enable-logging=stderr --v=0 --virtual-time-budget=5000 "
      "--user-data-dir='" +
      folder.file("profile") + "' --dump-dom 'file://" + file + fragment + "' > '" + folder.file("dom") + "' 2> '" +
      folder.file("log") + "' < /dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0) << read(folder.file("log"));
  return {read(folder.file("dom")), read(folder.file("log"))};
}

}  // namespace kernbench
