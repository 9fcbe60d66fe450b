#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <ostream>
#include <stdexcept>
#include <utility>

#include "runtime/host_memory.h"
#include "runtime/runtime_impl.h"

namespace kernbench {

namespace {
/// Tensors do not share an MMU page, and the gap behind each is unmapped.
constexpr Va kVaGrain = Va{2} << 20;

using RangeOwners =
    std::map<std::uint64_t, std::vector<std::size_t>>;  // offset in the packed range -> shards, in order

RangeOwners owners_of(const std::vector<ShardSpec>& shards) {
  RangeOwners owners;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].nbytes > 0) owners[shards[i].offset_bytes].push_back(i);
  }
  return owners;
}
}  // namespace

PeCoord Tensor::State::owner(std::size_t shard) const {
  const ShardSpec& s = shards[shard];
  return {static_cast<std::uint16_t>(s.sip), static_cast<std::uint16_t>(s.cube), static_cast<std::uint16_t>(s.pe)};
}

std::vector<std::size_t> Tensor::State::shards_of(std::size_t copy) const {
  std::vector<std::size_t> list;
  for (const auto& [offset, owners] : owners_of(shards)) list.push_back(owners.at(copy));
  return list;
}

TensorMemory::TensorMemory(RuntimeImpl& runtime)
    : runtime_(runtime),
      device_(runtime.map),
      units_(placement_units(runtime.map)),
      next_va_(runtime.map.sips, Va{1} << 32) {}

PlacementUnits TensorMemory::units_of(int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  if (const auto part = parts_.find(rank); runtime_.program.running() && part != parts_.end()) return part->second;
  const std::vector<PeCoord>& pes = runtime_.groups.rank_pes();
  if (!runtime_.program.running() || at >= pes.size()) return units_;
  PlacementUnits own;
  own.cubes = {pes[at].cube};
  own.pes = {{pes[at].pe}};
  own.all = false;
  return own;
}

void TensorMemory::set_part(int rank, CubeRange cubes, PeRange pes) {
  if (!runtime_.groups.rank_pes().empty()) throw std::invalid_argument("set_part: ranks are PEs");
  PlacementUnits part;
  part.all = false;
  const auto inside = [](int at, auto range) { return at >= range.first && at < range.first + range.count; };
  for (std::size_t i = 0; i < units_.cubes.size(); ++i) {
    if (!inside(units_.cubes[i], cubes)) continue;
    part.cubes.push_back(units_.cubes[i]);
    part.pes.emplace_back();
    for (const int pe : units_.pes[i]) {
      if (inside(pe, pes)) part.pes.back().push_back(pe);
    }
    if (part.pes.back().size() != static_cast<std::size_t>(std::max(pes.count, 0))) part.cubes.clear();
    if (part.cubes.empty()) break;
  }
  if (cubes.count < 1 || pes.count < 1 || part.cubes.size() != static_cast<std::size_t>(cubes.count)) {
    throw std::invalid_argument(
        fmt::format("set_part: cubes {} to {} with PEs {} to {} of each are not all there on every SIP", cubes.first,
                    cubes.first + cubes.count - 1, pes.first, pes.first + pes.count - 1));
  }
  parts_[rank] = std::move(part);
}

namespace {
/// Which PEs see which copy of a range: its owners their own, other PEs the first copy in their cube, all others the
/// first copy of all, which is mapped for everybody.
void map_range(const MachineMap& map, const Tensor::State& tensor, const std::vector<std::size_t>& owners,
               std::vector<MapEntry>& entries) {
  const auto entry_of = [&](std::size_t shard) {
    MapEntry entry;
    entry.va = tensor.va + tensor.shards[shard].offset_bytes;
    entry.bytes = tensor.shards[shard].nbytes;
    entry.target = PhysicalAddress::hbm(tensor.owner(shard), tensor.offsets[shard]);
    return entry;
  };
  entries.push_back(entry_of(owners.front()));
  if (owners.size() == 1) return;
  std::map<CubeCoord, std::size_t> first_in_cube;
  std::map<PeCoord, std::size_t> own;
  for (const std::size_t shard : owners) {
    first_in_cube.emplace(tensor.owner(shard).in_cube(), shard);
    own.emplace(tensor.owner(shard), shard);
  }
  std::map<std::size_t, std::vector<PeCoord>> viewers;
  for (const PeCoord pe : map.pes(static_cast<std::uint16_t>(tensor.sip))) {
    if (const auto found = own.find(pe); found != own.end()) {
      viewers[found->second].push_back(pe);
    } else if (const auto in_cube = first_in_cube.find(pe.in_cube()); in_cube != first_in_cube.end()) {
      viewers[in_cube->second].push_back(pe);
    }
  }
  viewers.erase(owners.front());
  for (auto& [shard, pes] : viewers) {
    entries.push_back(entry_of(shard));
    entries.back().viewers = std::move(pes);
  }
}
}  // namespace

Tensor TensorMemory::place(int rank, int sip, Shape shape, DType dtype, const DPPolicy& policy, const std::string& name,
                           bool clear) {
  refuse_unknown(fmt::format("tensor '{}'", name), "DType", dtype, DType::boolean);
  if (shape.rows < 1 || shape.cols < 1) {
    throw std::invalid_argument(fmt::format("tensor '{}': shape {} is empty: give at least 1x1", name, shape.str()));
  }
  // The runtime outlives the tensor, or nothing is given back.
  const std::shared_ptr<Tensor::State> tensor(new Tensor::State, [](Tensor::State* last) {
    std::unique_ptr<Tensor::State> owned(last);
    if (const auto runtime = last->runtime.lock()) runtime->tensors.leave(std::move(owned));
  });
  tensor->runtime = runtime_.weak_from_this();
  tensor->name = name;
  tensor->shape = shape;
  tensor->dtype = dtype;
  tensor->policy = policy;
  tensor->sip = sip;
  tensor->rank = rank;
  tensor->stream = runtime_.messages.stream_of(rank, 0);
  try {
    tensor->shards = place_shards(policy, shape, static_cast<int>(size_of(dtype)), units_of(rank), sip);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("tensor '{}': {}", name, error.what()));
  }

  std::vector<std::size_t> stale;
  while (true) {
    try {
      stale = allocate(*tensor);
      break;
    } catch (const OutOfDeviceMemory&) {
      if (!wait_for_leaving(sip)) throw;
    }
  }
  tensor->allocated = true;

  for (const ShardSpec& shard : tensor->shards) {
    tensor->va_bytes = std::max(tensor->va_bytes, shard.offset_bytes + shard.nbytes);
  }
  Va& next = next_va_[static_cast<std::size_t>(sip)];
  tensor->va = next;
  next += (tensor->va_bytes / kVaGrain + 1) * kVaGrain;

  MmuMapMessage mapping;
  for (const auto& [offset, owners] : owners_of(tensor->shards)) {
    tensor->copies = owners.size();
    map_range(runtime_.map, *tensor, owners, mapping.entries);
  }
  Tensor handle(tensor);
  const auto state = runtime_.messages.submit(std::move(mapping), rank, sip, tensor->stream, {}, name, {handle});
  const auto clear_stale = [&] {
    std::vector<HostCopy> copies;
    for (const std::size_t shard : stale) {
      copies.push_back({shard, 0, std::vector<std::uint8_t>(tensor->shards[shard].nbytes, 0)});
      if (runtime_.options.timed_host_io) continue;
      host_copies(*tensor, copies, true);  // one at a time: a large tensor is not held as a whole
      copies.clear();
    }
    host_copies(*tensor, copies, true);
  };
  if (clear && runtime_.options.data && !runtime_.options.timed_host_io) clear_stale();
  runtime_.messages.await_done(state);
  if (clear && runtime_.options.timed_host_io) clear_stale();
  return handle;
}

std::uint16_t TensorMemory::copy_stream(int rank, std::size_t queue) {
  constexpr std::uint16_t kQueues = 4;  // assumed: DMA queues that a host driver gives to one process
  std::vector<std::uint16_t>& streams = copy_streams_[rank];
  if (streams.empty()) {
    const std::uint16_t first = runtime_.messages.new_streams("host copies", kQueues);
    for (std::uint16_t i = 0; i < kQueues; ++i) streams.push_back(static_cast<std::uint16_t>(first + i));
  }
  return streams[queue % kQueues];
}

void TensorMemory::host_copies(const Tensor::State& tensor, std::vector<HostCopy>& copies, bool write) {
  if (!runtime_.options.timed_host_io) {
    if (!runtime_.options.data) return;
    for (HostCopy& copy : copies) {
      debug_access(tensor, copy.shard, copy.offset, copy.data.data(), copy.data.size(), write);
    }
    return;
  }
  const int rank = runtime_.program.scheduler().current() < 0 ? tensor.rank : runtime_.program.scheduler().current();
  std::vector<std::shared_ptr<Handle::State>> states;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    HostCopy& copy = copies[i];
    const PhysicalAddress address =
        PhysicalAddress::hbm(tensor.owner(copy.shard), tensor.offsets[copy.shard] + copy.offset);
    const std::uint16_t stream = copy_stream(rank, i);
    decltype(Message::body) body = MemoryReadMessage{address, {}, copy.data.size()};
    if (write) body = MemoryWriteMessage{address, std::move(copy.data)};
    states.push_back(runtime_.messages.submit(std::move(body), rank, tensor.sip, stream, {}, tensor.name));
  }
  for (const auto& state : states) runtime_.messages.await(state);
  for (std::size_t i = 0; i < copies.size(); ++i) {
    runtime_.messages.throw_fault(*states[i]);
    if (!write) copies[i].data = std::move(std::get<MemoryReadMessage>(states[i]->message->body).data);
  }
}

void TensorMemory::debug_access(const Tensor::State& tensor, std::size_t shard, std::uint64_t offset, void* data,
                                std::uint64_t bytes, bool write) {
  constexpr std::uint64_t kChunk = std::uint64_t{1} << 30;  // a payload's length has 32 bits
  auto& socket = *runtime_.module.pcie[static_cast<std::size_t>(tensor.sip)];
  PhysicalAddress address = PhysicalAddress::hbm(tensor.owner(shard), tensor.offsets[shard] + offset);
  auto* bytes_at = static_cast<unsigned char*>(data);
  while (bytes > 0) {
    const auto n = static_cast<unsigned>(std::min(bytes, kChunk));
    tlm::tlm_generic_payload payload;
    payload.set_command(write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
    payload.set_address(address.encode());
    payload.set_data_ptr(bytes_at);
    payload.set_data_length(n);
    payload.set_streaming_width(n);
    payload.set_byte_enable_ptr(nullptr);
    const unsigned moved = socket->transport_dbg(payload);
    if (moved != n) {
      throw std::logic_error(fmt::format("debug access to {} moved {} of {} bytes", address.str(), moved, n));
    }
    bytes -= n;
    bytes_at += n;
    address.offset += n;
  }
}

namespace {
/// Copies the rows of a shard's region between row-major `logical` and dense `packed`.
template <class Move>
void for_each_row(const Tensor::State& tensor, const ShardSpec& shard, const Move& move) {
  const std::uint64_t item = size_of(tensor.dtype);
  const std::uint64_t row_bytes = static_cast<std::uint64_t>(shard.region.cols) * item;
  for (std::int64_t r = 0; r < shard.region.rows; ++r) {
    const auto row = static_cast<std::uint64_t>(shard.region.row + r);
    const std::uint64_t at =
        (row * static_cast<std::uint64_t>(tensor.shape.cols) + static_cast<std::uint64_t>(shard.region.col)) * item;
    move(at, static_cast<std::uint64_t>(r) * row_bytes, row_bytes);
  }
}

/// The runtime of a tensor that may be used. Throws std::logic_error otherwise.
std::shared_ptr<RuntimeImpl> usable(const Tensor::State& tensor) {
  if (!tensor.allocated) throw std::logic_error(fmt::format("tensor '{}' is used after it was freed", tensor.name));
  std::shared_ptr<RuntimeImpl> runtime = tensor.runtime.lock();
  if (runtime == nullptr) throw std::logic_error(fmt::format("tensor '{}' is used after its run", tensor.name));
  return runtime;
}
}  // namespace

bool TensorMemory::takes_contents(const Tensor::State& tensor, std::uint64_t copy) {
  const RunOptions& options = runtime_.options;
  if (!options.data && !options.timed_host_io) return false;
  // Pages of the modelled memory are made when they are written.
  const std::uint64_t bytes = copy + (options.data ? std::exchange(tensor.untouched, 0) : 0);
  if (bytes >= kLargeHostMemory) {
    require_host_memory(bytes, fmt::format("contents of tensor '{}'", tensor.name),
                        "--data off needs none of it, smaller tensors or fewer ranks less");
  }
  return true;
}

void TensorMemory::write_contents(const Tensor::State& tensor, const std::uint8_t* data) {
  if (!takes_contents(tensor, 0)) return;
  std::vector<HostCopy> copies;
  for (std::size_t i = 0; i < tensor.shards.size(); ++i) {
    const ShardSpec& shard = tensor.shards[i];
    if (shard.nbytes == 0) continue;
    copies.push_back({i, 0, std::vector<std::uint8_t>(shard.nbytes)});
    for_each_row(tensor, shard, [&](std::uint64_t logical, std::uint64_t at, std::uint64_t n) {
      std::memcpy(copies.back().data.data() + at, data + logical, n);
    });
    if (runtime_.options.timed_host_io) continue;
    host_copies(tensor, copies, true);  // one at a time: a large tensor is not held twice
    copies.clear();
  }
  host_copies(tensor, copies, true);
}

void TensorMemory::access_untimed(const Tensor::State& tensor, std::uint8_t* data, bool write) {
  for (std::size_t i = 0; i < tensor.shards.size(); ++i) {
    std::vector<std::uint8_t> packed(tensor.shards[i].nbytes);
    if (packed.empty()) continue;
    if (!write) debug_access(tensor, i, 0, packed.data(), packed.size(), false);
    for_each_row(tensor, tensor.shards[i], [&](std::uint64_t logical, std::uint64_t at, std::uint64_t n) {
      std::uint8_t *whole = data + logical, *part = packed.data() + at;
      std::memcpy(write ? part : whole, write ? whole : part, n);
    });
    if (write) debug_access(tensor, i, 0, packed.data(), packed.size(), true);
  }
}

Tensor::State& Tensor::of(const char* call) const {
  if (state_ == nullptr) throw std::invalid_argument(fmt::format("Tensor::{}: the tensor is an empty handle", call));
  return *state_;
}

Shape Tensor::shape() const { return of("shape").shape; }
DType Tensor::dtype() const { return of("dtype").dtype; }
const std::string& Tensor::name() const { return of("name").name; }
Va Tensor::va() const { return of("va").va; }
int Tensor::sip() const { return of("sip").sip; }
const DPPolicy& Tensor::policy() const { return of("policy").policy; }
const std::vector<ShardSpec>& Tensor::shards() const { return of("shards").shards; }
std::size_t Tensor::copies() const { return of("copies").copies; }
std::uint64_t Tensor::bytes() const {
  const State& state = of("bytes");
  return static_cast<std::uint64_t>(state.shape.count()) * size_of(state.dtype);
}

PhysicalAddress Tensor::pa(std::size_t shard) const {
  if (shard >= of("pa").shards.size() || state_->shards[shard].nbytes == 0) {
    throw std::invalid_argument(fmt::format("tensor '{}' has no shard {} with contents (it has {})", state_->name,
                                            shard, state_->shards.size()));
  }
  return PhysicalAddress::hbm(state_->owner(shard), state_->offsets[shard]);
}

namespace {
const char* name_of(HostAccess access) { return kHostEntryPoints[static_cast<std::size_t>(access)].name; }
}  // namespace

std::vector<std::uint8_t> Tensor::read_bytes(HostAccess access, std::size_t copy) const {
  const auto runtime = usable(of(name_of(access)));
  if (copy >= state_->copies) {
    throw std::invalid_argument(
        fmt::format("tensor '{}': copy {} does not exist: give 0 to {}", state_->name, copy, state_->copies - 1));
  }
  runtime->messages.before_host_access(access, *state_);
  std::vector<std::uint8_t> logical(bytes(), 0);
  if (!runtime->options.data && !runtime->options.timed_host_io) return logical;
  std::vector<TensorMemory::HostCopy> copies;
  const auto fetch = [&] {
    runtime->tensors.host_copies(*state_, copies, false);
    for (const TensorMemory::HostCopy& from : copies) {
      for_each_row(*state_, state_->shards[from.shard], [&](std::uint64_t at, std::uint64_t packed, std::uint64_t n) {
        std::memcpy(logical.data() + at, from.data.data() + packed, n);
      });
    }
    copies.clear();
  };
  for (const std::size_t i : state_->shards_of(copy)) {
    copies.push_back({i, 0, std::vector<std::uint8_t>(state_->shards[i].nbytes)});
    if (!runtime->options.timed_host_io) fetch();  // one at a time: a large tensor is not held twice
  }
  fetch();
  return logical;
}

std::vector<double> Tensor::read_values(HostAccess access) const {
  const std::vector<std::uint8_t> raw = read_bytes(access, 0);
  std::vector<double> values(static_cast<std::size_t>(state_->shape.count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = load_element(raw.data(), state_->dtype, i);
  return values;
}

std::vector<double> Tensor::to_host() const { return read_values(HostAccess::to_host); }
std::vector<double> Tensor::data() const { return read_values(HostAccess::data); }
std::vector<std::uint8_t> Tensor::bytes_to_host(std::size_t copy) const {
  return read_bytes(HostAccess::bytes_to_host, copy);
}
double Tensor::at(std::int64_t row, std::int64_t col) const { return read_element(HostAccess::at, row, col); }
double Tensor::operator()(std::int64_t row, std::int64_t col) const {
  return read_element(HostAccess::call_operator, row, col);
}

/// "x (2x3 f16): [1, 2, 3; 4, 5, 6]"; of large tensors the first rows and columns.
std::string Tensor::text(HostAccess access) const {
  constexpr std::int64_t kShown = 8;
  const std::vector<double> values = read_values(access);
  const Shape shape = state_->shape;
  std::string out = fmt::format("{} ({} {}): [", state_->name, shape.str(), kernbench::to_string(state_->dtype));
  for (std::int64_t r = 0; r < std::min(shape.rows, kShown); ++r) {
    if (r > 0) out += "; ";
    for (std::int64_t c = 0; c < std::min(shape.cols, kShown); ++c) {
      out += fmt::format("{}{:g}", c > 0 ? ", " : "", values[static_cast<std::size_t>(r * shape.cols + c)]);
    }
    if (shape.cols > kShown) out += ", ...";
  }
  return out + (shape.rows > kShown ? "; ...]" : "]");
}

std::string to_string(const Tensor& tensor) { return tensor.text(HostAccess::to_string); }
std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << tensor.text(HostAccess::stream_output);
}

double Tensor::read_element(HostAccess access, std::int64_t row, std::int64_t col) const {
  const auto runtime = usable(of(name_of(access)));
  const Shape shape = state_->shape;
  if (row < 0 || row >= shape.rows || col < 0 || col >= shape.cols) {
    throw std::invalid_argument(
        fmt::format("tensor '{}': element ({}, {}) is outside of {}", state_->name, row, col, shape.str()));
  }
  runtime->messages.before_host_access(access, *state_);
  const std::uint64_t item = size_of(state_->dtype);
  for (const std::size_t i : state_->shards_of(0)) {
    const Region& region = state_->shards[i].region;
    const std::int64_t r = row - region.row, c = col - region.col;
    if (r < 0 || r >= region.rows || c < 0 || c >= region.cols) continue;
    std::vector<TensorMemory::HostCopy> element(1);
    element[0] = {i, static_cast<std::uint64_t>(r * region.cols + c) * item, std::vector<std::uint8_t>(item)};
    runtime->tensors.host_copies(*state_, element, false);
    return load_element(element[0].data.data(), state_->dtype, 0);
  }
  throw std::logic_error(fmt::format("tensor '{}': no shard holds element ({}, {})", state_->name, row, col));
}

void Tensor::write_bytes(const std::vector<std::uint8_t>& data) {
  const auto runtime = usable(of("write_bytes"));
  if (data.size() != bytes()) {
    throw std::invalid_argument(
        fmt::format("tensor '{}' has {} bytes, the data {}", state_->name, bytes(), data.size()));
  }
  runtime->messages.before_host_access(HostAccess::write_bytes, *state_);
  runtime->tensors.write_contents(*state_, data.data());
}

void Tensor::copy_from(const Tensor& source) {
  of("copy_from");
  if (!source) throw std::invalid_argument(fmt::format("copy to tensor '{}': the source is an empty handle", name()));
  if (source.shape() != shape() || source.dtype() != dtype()) {
    throw std::invalid_argument(
        fmt::format("copy from tensor '{}' ({} {}) to tensor '{}' ({} {}): shapes or dtypes differ", source.name(),
                    source.shape().str(), kernbench::to_string(source.dtype()), name(), shape().str(),
                    kernbench::to_string(dtype())));
  }
  usable(*state_);
  const std::vector<std::uint8_t> data = source.read_bytes(HostAccess::copy_from_source, 0);
  const auto runtime = usable(*state_);  // reading may have given others a turn
  runtime->messages.before_host_access(HostAccess::copy_from_target, *state_);
  runtime->tensors.write_contents(*state_, data.data());
}

void Tensor::free() {
  const auto runtime = of("free").runtime.lock();
  if (!state_->allocated) throw std::logic_error(fmt::format("tensor '{}' is freed twice", state_->name));
  if (runtime == nullptr) throw std::logic_error(fmt::format("tensor '{}' is freed after its run", state_->name));
  runtime->messages.before_host_access(HostAccess::free, *state_);
  if (!state_->allocated) throw std::logic_error(fmt::format("tensor '{}' is freed twice", state_->name));
  runtime->tensors.release(*state_);
}

}  // namespace kernbench
