#pragma once
#include <string>

namespace kernbench::test {

/// A step of an MSCCL file; `more`: further attributes.
inline std::string step(int s, const std::string& type, const std::string& from, int from_chunk, const std::string& to,
                        int to_chunk, const std::string& more = "cnt=\"1\"") {
  return "<step s=\"" + std::to_string(s) + "\" type=\"" + type + "\" srcbuf=\"" + from + "\" srcoff=\"" +
         std::to_string(from_chunk) + "\" dstbuf=\"" + to + "\" dstoff=\"" + std::to_string(to_chunk) + "\" " + more +
         "/>\n";
}

}  // namespace kernbench::test
