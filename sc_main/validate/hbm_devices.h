#pragma once
#include <filesystem>
#include <string>

#include "models/hbm/hbm_config.h"
#include "tlm/config/config_node.h"

namespace kernbench::validate {

/// A device of the reference tables.
struct HbmDevice {
  HbmConfig config;  ///< one channel's organisation, timing and clock; no refresh
  std::uint32_t rows = 0;
};

/// The devices that a folder's timing.yaml defines.
class HbmDevices {
 public:
  /// Throws ConfigError if there is no such file, or it is broken.
  explicit HbmDevices(const std::filesystem::path& timing_file);

  /// By the name that the tables use: STANDARD_RATE, such as HBM2_2000, HBM3_6400, HBM2E_3200; _1sid: with so many
  /// stack IDs (without it, the most there are). Throws std::invalid_argument if no device of that kind is defined.
  HbmDevice grade(const std::string& name) const;
  /// By the key in the file.
  HbmDevice device(const std::string& key) const;

 private:
  HbmDevice read(const ConfigNode& organisation, const ConfigNode& timing) const;
  ConfigNode root_;
  std::string file_;
};

}  // namespace kernbench::validate
