#include "sc_main/validate/noc_tables.h"

namespace kernbench::validate {

/// Every table of the folder, by its columns.
std::vector<Group> noc_groups(const Request& request) {
  std::vector<Group> groups;
  unsigned curves = 0;
  for (const std::filesystem::path& file : csv_files(request.reference)) {
    const Table table(file);
    if (table.has("zero_load_latency_cycles") && table.has("saturation_load")) continue;  // repeats the other tables
    if (table.has("vc_buf_size_flits")) {
      groups.push_back(credit_loop_group(table, request));
    } else if (table.has("min_packet_latency_cycles")) {
      groups.push_back(zero_load_group(table, request));
    } else if (table.has("latency_seed1")) {
      if (!request.sample) groups.push_back(seed_noise_group(table, request));
    } else if (table.has("variant")) {
      if (!request.sample) groups.push_back(sensitivity_group(table, request));
    } else {
      constexpr unsigned kSampleEvery = 8;
      if (!request.sample || curves++ % kSampleEvery == 0) groups.push_back(latency_load_group(table, request));
    }
  }
  return groups;
}

}  // namespace kernbench::validate
