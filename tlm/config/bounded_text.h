#pragma once
#include <cstddef>
#include <istream>
#include <optional>
#include <string>

namespace kernbench {

/// All that a stream has; nothing if it is more than `most` bytes, as of a device that never ends.
inline std::optional<std::string> bounded_text(std::istream& in, std::size_t most) {
  constexpr std::size_t kPiece = 1 << 16;
  std::string text;
  while (in && text.size() <= most) {
    const std::size_t before = text.size();
    text.resize(before + kPiece);
    in.read(text.data() + before, static_cast<std::streamsize>(kPiece));
    text.resize(before + static_cast<std::size_t>(in.gcount()));
  }
  return text.size() > most ? std::nullopt : std::optional(std::move(text));
}

}  // namespace kernbench
