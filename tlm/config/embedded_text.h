#pragma once

namespace kernbench {

/// A file built into a library. Arrays of them are written by cmake/EmbedTexts.cmake and end with a null name.
struct EmbeddedText {
  const char* name;  ///< of the file, without folder and extension
  const char* text;
};

}  // namespace kernbench
