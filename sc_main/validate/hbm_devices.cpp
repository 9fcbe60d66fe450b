#include "sc_main/validate/hbm_devices.h"

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <stdexcept>

namespace kernbench::validate {

namespace {

double number(const ConfigNode* node, double otherwise) {
  if (node == nullptr || !node->is_scalar()) return otherwise;
  char* end = nullptr;
  const double value = std::strtod(node->text.c_str(), &end);
  return end == node->text.c_str() ? otherwise : value;
}
std::uint32_t integer(const ConfigNode* node, std::uint32_t otherwise) {
  return static_cast<std::uint32_t>(number(node, otherwise));
}
std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

HbmDevices::HbmDevices(const std::filesystem::path& timing_file)
    : root_(load_config(timing_file.string())), file_(timing_file.string()) {}

HbmDevice HbmDevices::read(const ConfigNode& organisation, const ConfigNode& timed) const {
  HbmDevice device;
  HbmConfig& c = device.config;
  const ConfigNode* standard = organisation.find("standard");
  const bool hbm3 = standard != nullptr && standard->text.rfind("HBM3", 0) == 0;
  // The data bus moves 2 (HBM2) or 4 (HBM3) bits per pin and CK.
  const double rate = number(timed.find("data_rate_mbps_per_pin"), 0);
  if (rate <= 0) throw std::invalid_argument(file_ + ": a device has no data_rate_mbps_per_pin");
  c.ck_hz = static_cast<std::uint64_t>(std::llround(rate * 1e6 / (hbm3 ? 4 : 2)));
  c.half_clock_commands = hbm3;
  c.channels = 1;
  c.pseudo_channels = integer(organisation.find("pseudo_channels"), 2);
  c.bank_groups = integer(organisation.find("bank_groups"), 4);
  c.banks_per_group = integer(organisation.find("banks_per_group"), 4);
  c.stack_ids = integer(organisation.find("stack_ids"), 1);
  c.row_bytes = integer(organisation.find("row_bytes"), 1024);
  c.burst_bytes = integer(organisation.find("access_bytes"), 32);
  c.burst_ck = integer(organisation.find("burst_ck"), 2);
  c.refresh = RefreshPolicy::none;
  c.controller_latency = 0;
  device.rows = integer(organisation.find("rows"), 16384);
  const ConfigNode* timing = timed.find("timing");
  if (timing == nullptr) throw std::invalid_argument(file_ + ": a device has no timing");
  const auto t = [&](const char* name) {
    const ConfigNode* value = timing->find(name);
    return value != nullptr && value->is_list() && !value->items.empty() ? integer(&value->items.front(), 0) : 0u;
  };
  HbmTiming& x = c.timing;
  x.t_cl = t("tCL"), x.t_cwl = t("tCWL"), x.t_rcd_rd = t("tRCDRD"), x.t_rcd_wr = t("tRCDWR"), x.t_rp = t("tRP");
  x.t_ras = t("tRAS"), x.t_rc = t("tRC"), x.t_rrd_s = t("tRRD_S"), x.t_rrd_l = t("tRRD_L"), x.t_faw = t("tFAW");
  x.t_ccd_s = t("tCCD_S"), x.t_ccd_l = t("tCCD_L"), x.t_ccd_r = t("tCCD_R"), x.t_wr = t("tWR");
  x.t_wtr_s = t("tWTR_S"), x.t_wtr_l = t("tWTR_L"), x.t_rtp = t("tRTP"), x.t_rtw = t("tRTW"), x.t_ppd = t("tPPD");
  x.t_rfc_ab = t("tRFCab"), x.t_rfc_pb = t("tRFCpb"), x.t_rrefd = t("tRREFD"), x.t_refi = t("tREFI");
  x.t_refi_pb = t("tREFIpb");
  return device;
}

HbmDevice HbmDevices::device(const std::string& key) const {
  const ConfigNode* devices = root_.find("devices");
  const ConfigNode* node = devices == nullptr ? nullptr : devices->find(key);
  if (node == nullptr) throw std::invalid_argument(file_ + " defines no device '" + key + "'");
  return read(*node, *node);
}

HbmDevice HbmDevices::grade(const std::string& name) const {
  const std::size_t first = name.find('_'), second = name.find('_', first + 1);
  const std::string standard = name.substr(0, first);
  const double rate = first == std::string::npos ? 0 : std::strtod(name.c_str() + first + 1, nullptr);
  const std::string suffix = second == std::string::npos ? "" : name.substr(second + 1);
  const unsigned stack_ids = suffix.empty() ? 0 : static_cast<unsigned>(std::strtoul(suffix.c_str(), nullptr, 10));
  const ConfigNode* best = nullptr;
  const ConfigNode* family = nullptr;  // organisation for a derived timing
  if (const ConfigNode* devices = root_.find("devices")) {
    for (const ConfigNode::Entry& entry : devices->entries) {
      const ConfigNode* kind = entry.value.find("standard");
      if (entry.key.rfind("ramulator21_", 0) != 0 || kind == nullptr) continue;
      const unsigned ids = integer(entry.value.find("stack_ids"), 1);
      const bool wanted = stack_ids == 0 || ids == stack_ids;
      const auto better = [&](const ConfigNode* than) {
        return wanted && (than == nullptr || ids > integer(than->find("stack_ids"), 1));
      };
      if (standard.rfind(kind->text, 0) == 0 && better(family)) family = &entry.value;
      if (kind->text == standard && number(entry.value.find("data_rate_mbps_per_pin"), 0) == rate && better(best))
        best = &entry.value;
    }
  }
  if (best != nullptr) return read(*best, *best);
  for (const ConfigNode::Entry& entry : root_.entries) {
    const bool derived = entry.key.rfind(lower(standard), 0) == 0 && entry.key.find("derived") != std::string::npos;
    if (derived && family != nullptr && number(entry.value.find("data_rate_mbps_per_pin"), 0) == rate)
      return read(*family, entry.value);
  }
  throw std::invalid_argument(file_ + " defines no device of grade '" + name + "'");
}

}  // namespace kernbench::validate
