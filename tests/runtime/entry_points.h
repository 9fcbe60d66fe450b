#pragma once
#include <cctype>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/host_access.h"
#include "runtime/runtime.h"

namespace kernbench::testing {

/// Elements of the f32 tensors, one row, on which entry points are tried: all before, and all after, a writer that is
/// still pending; and all of a second tensor.
inline constexpr std::int64_t kEntryElements = 8;
inline constexpr float kBefore = 1, kAfter = 2, kOther = 5;

/// Uses one entry point on `tensor`; returns the value that it read, or what it would have found if it only writes.
/// No default: a new entry point of the registry does not compile until it has a row here.
inline double use_entry_point(HostAccess access, Tensor& tensor, Tensor& other) {
  switch (access) {
    case HostAccess::to_host:
      return tensor.to_host().at(0);
    case HostAccess::data:
      return tensor.data().at(0);
    case HostAccess::at:
      return tensor.at(0, 0);
    case HostAccess::call_operator:
      return tensor(0, 0);
    case HostAccess::stream_output: {
      std::ostringstream text;
      text << tensor;
      return text.str().find("[2,") != std::string::npos ? kAfter : kBefore;
    }
    case HostAccess::to_string:
      return to_string(tensor).find("[2,") != std::string::npos ? kAfter : kBefore;
    case HostAccess::bytes_to_host:
      return load_element(tensor.bytes_to_host().data(), DType::f32, 0);
    case HostAccess::copy_from_source:
      other.copy_from(tensor);
      return other.at(0, 0);
    case HostAccess::copy_from_target:
      tensor.copy_from(other);
      return tensor.at(0, 0);
    case HostAccess::write_bytes:
      tensor.write_bytes(std::vector<std::uint8_t>(kEntryElements * sizeof(float), 0));
      return tensor.at(0, 0);
    case HostAccess::free:
      tensor.free();
      return 0;
  }
  return -1;
}

/// What use_entry_point returns if the access came after the pending writer of kAfter.
inline double expected_of(HostAccess access) {
  switch (access) {
    case HostAccess::copy_from_target:
      return kOther;  // written over the later value
    case HostAccess::write_bytes:
    case HostAccess::free:
      return 0;
    default:
      return kAfter;
  }
}

/// "to_host__", for the names of tests.
inline std::string identifier_of(const HostEntryPoint& entry) {
  std::string name = entry.name;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

/// How often an entry point had to wait so far.
inline std::uint64_t waits_of(const Runtime& runtime, HostAccess access) {
  return runtime.host_accesses()[static_cast<std::size_t>(access)].waited;
}

}  // namespace kernbench::testing
