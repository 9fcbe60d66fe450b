#include "tlm/machine/names.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <stdexcept>

namespace kernbench::names {

namespace {
constexpr std::array<char, kSides> kSideLetter = {'n', 's', 'e', 'w'};

/// Reads `word` and a number at `text`; advances it. False if they are not there.
bool take(std::string_view& text, std::string_view word, std::uint16_t& number) {
  if (text.substr(0, word.size()) != word) return false;
  text.remove_prefix(word.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool matches_from(const char* glob, const char* name) {
  for (; *glob != '\0'; ++glob) {
    if (*glob == '*') {
      const bool deep = glob[1] == '*';
      const char* rest = glob + (deep ? 2 : 1);
      for (;; ++name) {
        if (matches_from(rest, name)) return true;
        if (*name == '\0' || (!deep && *name == '.')) return false;
      }
    }
    if (*name == '\0' || (*glob == '?' ? *name == '.' : *glob != *name)) return false;
    ++name;
  }
  return *name == '\0';
}
}  // namespace

std::string sip(std::uint16_t sip) { return fmt::format("sip{}", sip); }
std::string cube(CubeCoord cube) { return fmt::format("sip{}.cube{}", cube.sip, cube.cube); }
std::string router(CubeCoord cube, int row, int column) {
  return fmt::format("sip{}.cube{}.r{}c{}", cube.sip, cube.cube, row, column);
}
std::string pe(PeCoord pe) { return fmt::format("sip{}.cube{}.pe{}", pe.sip, pe.cube, pe.pe); }
std::string pe_part(PeCoord coord, const std::string& part) { return pe(coord) + "." + part; }
std::string hbm(CubeCoord cube) { return fmt::format("sip{}.cube{}.hbm", cube.sip, cube.cube); }
std::string hbm_port(PeCoord owner) { return fmt::format("sip{}.cube{}.hbm.pe{}", owner.sip, owner.cube, owner.pe); }
std::string pseudo_channel(CubeCoord cube, int channel, int pc) {
  return fmt::format("sip{}.cube{}.hbm.ch{}.pc{}", cube.sip, cube.cube, channel, pc);
}
std::string sram(CubeCoord cube) { return fmt::format("sip{}.cube{}.sram", cube.sip, cube.cube); }
std::string m_cpu(CubeCoord cube) { return fmt::format("sip{}.cube{}.m_cpu", cube.sip, cube.cube); }
std::string initiator(CubeCoord cube, std::uint16_t number) {
  return fmt::format("sip{}.cube{}.initiator{}", cube.sip, cube.cube, number);
}
std::string ucie(CubeCoord cube, Side side) {
  return fmt::format("sip{}.cube{}.ucie_{}", cube.sip, cube.cube, kSideLetter[static_cast<std::size_t>(side)]);
}
std::string io(std::uint16_t sip) { return fmt::format("sip{}.io0", sip); }
std::string io_cpu(std::uint16_t sip) { return fmt::format("sip{}.io0.io_cpu", sip); }
std::string pcie_ep(std::uint16_t sip) { return fmt::format("sip{}.io0.pcie_ep", sip); }
std::string crossbar(std::uint16_t sip) { return fmt::format("sip{}.io0.xbar", sip); }
std::string io_ucie(std::uint16_t sip, int column) { return fmt::format("sip{}.io0.ucie{}", sip, column); }
std::string link_port(std::uint16_t sip, int port) { return fmt::format("sip{}.io0.link{}", sip, port); }

std::string fabric_crossbar() { return "fabric.xbar"; }
std::string fabric_link(std::uint16_t sip) { return fmt::format("fabric.link{}", sip); }

std::string network_interface(const std::string& endpoint) {
  const std::string last = leaf(endpoint), up = parent(endpoint);
  if (leaf(up) == "hbm") return parent(up) + ".ni_hbm" + last.substr(2);  // sip0.cube3.hbm.pe5
  return up + ".ni_" + last;
}

std::string leaf(const std::string& name) {
  const auto dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(dot + 1);
}

std::string parent(const std::string& name) {
  const auto dot = name.rfind('.');
  return dot == std::string::npos ? std::string() : name.substr(0, dot);
}

PeCoord parse_pe(const std::string& text) {
  std::string_view rest = text;
  PeCoord pe;
  const bool ok = take(rest, "sip", pe.sip) && take(rest, ".cube", pe.cube) && take(rest, ".pe", pe.pe) &&
                  (rest.empty() || rest.front() == '.');
  if (!ok) throw std::invalid_argument(fmt::format("'{}' names no PE; expected a name like sip0.cube3.pe5", text));
  return pe;
}

bool matches(const std::string& glob, const std::string& name) { return matches_from(glob.c_str(), name.c_str()); }

}  // namespace kernbench::names
