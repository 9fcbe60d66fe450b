#pragma once
#include <fmt/format.h>

#include <string>

namespace kernbench {

/// An all-reduce in MSCCL's form: every gpu gets all of all others and adds it up, its own first and then those of the
/// others by number. So gpus add in different orders.
inline std::string one_step_all_reduce(int gpus) {
  const auto step = [](int number, const char* type, const char* from, int at, const char* to, int place, int block,
                       int of_block) {
    return fmt::format(
        "<step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" cnt=\"1\" depid=\"{}\" "
        "deps=\"{}\" hasdep=\"1\"/>\n",
        number, type, from, at, to, place, block, of_block);
  };
  std::string text = fmt::format(
      "<algo name=\"one_step\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"1\" ngpus=\"{}\" coll=\"allreduce\" "
      "inplace=\"1\">\n",
      gpus);
  for (int gpu = 0; gpu < gpus; ++gpu) {
    text += fmt::format("<gpu id=\"{}\" i_chunks=\"1\" o_chunks=\"0\" s_chunks=\"{}\">\n", gpu, gpus - 1);
    std::string sums;
    for (int block = 0; block < gpus - 1; ++block) {
      const int peer = block < gpu ? block : block + 1;
      text += fmt::format("<tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"0\">\n", block, peer, peer) +
              step(0, "s", "i", 0, "s", gpu < peer ? gpu : gpu - 1, -1, -1) +
              step(1, "r", "s", block, "s", block, -1, -1) + "</tb>\n";
      sums += step(block, "nop", "i", 0, "i", 0, block, 1);
    }
    for (int part = 0; part < gpus - 1; ++part) sums += step(gpus - 1 + part, "re", "s", part, "i", 0, -1, -1);
    text += fmt::format("<tb id=\"{}\" send=\"-1\" recv=\"-1\" chan=\"0\">\n{}</tb>\n</gpu>\n", gpus - 1, sums);
  }
  return text + "</algo>\n";
}

}  // namespace kernbench
