#pragma once
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ccl/contract/plan_request.h"
#include "tlm/kernel/call.h"
#include "tlm/kernel/tl.h"

/// What an algorithm module and KernBench agree on. A module is one file with one descriptor; see
/// docs/collective_algorithms.md.
namespace kernbench::ccl {

/// Version of the binary interface: raised when a header that modules compile against (this one, plan_request.h,
/// schedule.h, tlm/kernel/tl.h, call.h, machine_map.h) changes its layout or numbers.
inline constexpr std::uint32_t kAbiVersion = 11;

/// How SIPs are linked, as kernels receive it (`sip_topo_kind`). A module hands out its own copy, so that a kernel
/// built against other numbers is refused.
struct TopologyKinds {
  /// As kernels receive it.
  std::int32_t ring_1d = 0, torus_2d = 1, mesh_2d_no_wrap = 2, switch_star = 3, fully_connected = 4;
};
inline constexpr TopologyKinds kTopologyKinds;  ///< the numbers of this build

/// Types of kernel parameters. Matching is exact.
enum class ArgumentType : std::uint8_t { va, int64, int32, float64 };
const char* to_string(ArgumentType type);  ///< the C++ type: "Va", "std::int64_t", "int", "double"

/// One value of a kernel parameter.
struct Argument {
  ArgumentType type = ArgumentType::int64;  ///< which member of the union holds it
  union {
    Va va;
    std::int64_t int64;
    std::int32_t int32;
    double float64;
  };
  Argument() : int64(0) {}
  explicit Argument(Va value) : type(ArgumentType::va), va(value) {}                  ///< of type Va
  explicit Argument(std::int64_t value) : type(ArgumentType::int64), int64(value) {}  ///< of type std::int64_t
  explicit Argument(std::int32_t value) : type(ArgumentType::int32), int32(value) {}  ///< of type int
  explicit Argument(double value) : type(ArgumentType::float64), float64(value) {}    ///< of type double
};

/// `kernel_args` of a module: the kernel's leading arguments after `t_ptr`, the address of the input tensor, in order.
/// The function gets the number of ranks of the group (`world_size`), the elements of the largest PE's share (`n_elem`)
/// and the grid of cubes that contribute, 1 x 1 with scope sip (`cube_w`, `cube_h`).
struct KernelArgs {
  const ArgumentType* types = nullptr;  ///< of what is returned, in order
  std::uint32_t count = 0;              ///< of types
  /// Fills `out`.
  void (*call)(int world_size, std::int64_t n_elem, int cube_w, int cube_h, Argument* out) = nullptr;
};

/// `kernel` of a module: its parameter types without the trailing `Tl&`.
struct Kernel {
  const ArgumentType* types = nullptr;                        ///< of the parameters, in order
  std::uint32_t count = 0;                                    ///< of types
  void (*call)(const Argument* arguments, Tl& tl) = nullptr;  ///< runs it on one PE
};

/// A number that ccl.yaml may set for this algorithm; it reaches kernels in tl.call().parameters.
struct Parameter {
  enum class Unit : std::uint8_t { none, bytes };  ///< how ccl.yaml gives it
  const char* name;     ///< key in ccl.yaml; `module`, `world_size` and `n_elem` have a meaning of their own there
  Unit unit;            ///< bytes: ccl.yaml gives a quantity, as in `64 KiB`
  std::int64_t preset;  ///< where ccl.yaml is silent
  /// Allowed range, both included: 0 <= least <= preset <= most.
  std::int64_t least, most;
  const char* help;  ///< one line
};

/// IPCQ directions an algorithm sends on. The backend writes the neighbour tables from this and the topology.
enum DirectionSet : std::uint32_t {
  kCubeGrid = 1,     ///< N S E W
  kGlobalGrid = 2,   ///< global_N/S/E/W: the grid of SIPs; E and W follow the ranks where there is no grid
  kGlobalRing = 4,   ///< what ring_position() uses: kGlobalGrid, and global(k) where the grid has no Hamiltonian cycle
  kGlobalPeers = 8,  ///< global(k) for every other rank of the group
  kLocalLine = 16,   ///< local(j) to the PEs before and after this one
  kLocalPeers = 32   ///< local(j) for every other PE of the cube
};
/// Bits of a DirectionSet.
inline constexpr std::uint32_t kAllDirections = 63;

/// A place in Algorithm::operations.
constexpr std::uint32_t bit(CollectiveOp op) { return 1u << static_cast<unsigned>(op); }
/// A place in Algorithm::scopes.
constexpr std::uint32_t bit(Scope scope) { return 1u << static_cast<unsigned>(scope); }
/// A place in Algorithm::topologies.
constexpr std::uint32_t topology_bit(std::int32_t kind) { return 1u << kind; }

/// Every kind of kTopologyKinds.
inline constexpr std::uint32_t kAllTopologies =
    topology_bit(kTopologyKinds.ring_1d) | topology_bit(kTopologyKinds.torus_2d) |
    topology_bit(kTopologyKinds.mesh_2d_no_wrap) | topology_bit(kTopologyKinds.switch_star) |
    topology_bit(kTopologyKinds.fully_connected);
/// Every scope.
inline constexpr std::uint32_t kAllScopes = bit(Scope::sip) | bit(Scope::cube) | bit(Scope::pe);
/// Every operation that has data, which is all but barrier: what general algorithms serve.
inline constexpr std::uint32_t kAllOperations =
    bit(CollectiveOp::all_reduce) | bit(CollectiveOp::all_gather) | bit(CollectiveOp::reduce_scatter) |
    bit(CollectiveOp::reduce) | bit(CollectiveOp::broadcast) | bit(CollectiveOp::all_to_all) |
    bit(CollectiveOp::gather) | bit(CollectiveOp::scatter) | bit(CollectiveOp::send_recv);
/// What may go straight from PE to PE: of every element that a rank gets, one PE keeps it. It comes from one PE as it
/// is, or, in a reduce_scatter, one term comes from each rank and that PE adds them.
inline constexpr std::uint32_t kPeToPeOperations = bit(CollectiveOp::all_gather) | bit(CollectiveOp::reduce_scatter) |
                                                   bit(CollectiveOp::all_to_all) | bit(CollectiveOp::gather) |
                                                   bit(CollectiveOp::scatter);

/// The parameter that nearly all algorithms have.
inline constexpr Parameter kChunkBytes[] = {
    {"chunk_bytes", Parameter::Unit::bytes, 0, 0, 1 << 30, "bytes of a message; 0: by size; at most a slot"}};

/// How an algorithm says what is to be done; each has a maker below.
enum class AlgorithmKind : std::uint8_t {
  kernel,    ///< a program that every PE runs: kernel_algorithm()
  schedule,  ///< lists of steps, made for each request: schedule_algorithm()
  pe_to_pe,  ///< nothing: the backend sends each block straight to where it goes: pe_to_pe_algorithm()
};

/// The descriptor. The host calls `plan`, `links` and `kernel_args`, each PE of a launch `kernel`; no state lives
/// between calls.
struct Algorithm {
  std::uint32_t abi_version = kAbiVersion;        ///< first, so that a module of another version can be recognised
  const char* name = nullptr;                     ///< for messages
  const TopologyKinds* topology_kinds = nullptr;  ///< the module's own copy
  std::int32_t (*topo_name_to_kind)(const char* name) =
      nullptr;                            ///< of system.sips.topology; null: kind 0, whatever it is
  KernelArgs kernel_args;                 ///< makes the leading arguments
  Kernel kernel;                          ///< the entry point
  const Parameter* parameters = nullptr;  ///< what ccl.yaml may set
  std::uint32_t parameter_count = 0;      ///< of parameters
  std::uint32_t operations = 0;  ///< bit(CollectiveOp) of those it serves; none: all_reduce. Of a kernel all_reduce,
                                 ///< reduce, broadcast, in place
  std::uint32_t scopes = 0;      ///< bit(Scope) of those it serves; none: sip. Of a kernel sip and cube only
  std::uint32_t topologies = 0;  ///< topology_bit(kind); none: all, and the kernel refuses what it cannot serve
  std::uint32_t directions = 0;  ///< DirectionSet of a kernel; none: kCubeGrid and kGlobalGrid
  /// Schedule modules: makes the lists of all nodes; `kernel` is schedule_kernel, which follows them. Throws
  /// std::invalid_argument where it cannot serve the request.
  Plan (*plan)(const PlanRequest& request) = nullptr;
  /// Node pairs (a < b) that its schedules may use: the queues between them. Asked once for all operations, so that
  /// operation, root, peer and bytes of the request mean nothing here. Required with `plan`. A kernel may have it for
  /// queues that depend on the request, such as its parameters: nodes are ranks, and rank b is global(b) to rank a.
  std::vector<std::pair<std::int32_t, std::int32_t>> (*links)(const PlanRequest& request) = nullptr;
  /// In place of these two: the backend sends what a PE holds straight to the PE that gets it, and makes the queues
  /// that a call needs for this (decision 0500).
  bool pe_to_pe = false;

  /// Which of the three it is.
  AlgorithmKind kind() const {
    if (plan != nullptr) return AlgorithmKind::schedule;
    return pe_to_pe ? AlgorithmKind::pe_to_pe : AlgorithmKind::kernel;
  }
};

/// `kernel_args` of schedule modules, and of kernels that need no more: n_elem, cube_w, cube_h, n_sips.
std::tuple<std::int64_t, int, int, int> schedule_kernel_args(int world_size, std::int64_t n_elem, int cube_w,
                                                             int cube_h);
/// `kernel` of schedule modules: follows the steps that the backend has installed on its PE for the call.
void schedule_kernel(Va t_ptr, std::int64_t n_elem, int cube_w, int cube_h, int n_sips, int sip_rank, int sip_topo_kind,
                     int sip_topo_w, int sip_topo_h, Tl& tl);

/// What `topo_name_to_kind` of the built-in algorithms is. Throws std::invalid_argument on an unknown name.
std::int32_t standard_topology_kind(const char* name);

namespace detail {

template <class T>
constexpr ArgumentType argument_type() {
  if constexpr (std::is_same_v<T, Va>) {
    return ArgumentType::va;
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return ArgumentType::int64;
  } else if constexpr (std::is_same_v<T, std::int32_t>) {
    return ArgumentType::int32;
  } else {
    static_assert(std::is_same_v<T, double>, "kernel parameters are Va, std::int64_t, int or double");
    return ArgumentType::float64;
  }
}

template <class T>
T value_of(const Argument& argument) {
  if constexpr (std::is_same_v<T, Va>) {
    return argument.va;
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return argument.int64;
  } else if constexpr (std::is_same_v<T, std::int32_t>) {
    return argument.int32;
  } else {
    return argument.float64;
  }
}

template <class... T>
struct TypeList {
  static constexpr ArgumentType types[sizeof...(T) + 1] = {argument_type<T>()..., ArgumentType::int64};  // never empty
  static constexpr std::uint32_t count = sizeof...(T);
};

template <auto Function>
struct ArgsAdapter;
template <class... T, std::tuple<T...> (*Function)(int, std::int64_t, int, int)>
struct ArgsAdapter<Function> : TypeList<T...> {
  static void call(int world_size, std::int64_t n_elem, int cube_w, int cube_h, Argument* out) {
    std::apply([out](auto... value) mutable { ((*out++ = Argument(value)), ...); },
               Function(world_size, n_elem, cube_w, cube_h));
  }
};

template <class List>
struct KernelAdapter;
template <class... T>
struct KernelAdapter<std::tuple<T...>> {
  template <auto Function, std::size_t... I>
  static void call(const Argument* arguments, Tl& tl, std::index_sequence<I...>) {
    Function(value_of<T>(arguments[I])..., tl);
  }
};

/// (T..., Tl&) -> std::tuple<T...>
template <class... T>
struct DropLast;
template <>
struct DropLast<Tl&> {
  using type = std::tuple<>;
};
template <class First, class... Rest>
struct DropLast<First, Rest...> {
  using type =
      decltype(std::tuple_cat(std::declval<std::tuple<First>>(), std::declval<typename DropLast<Rest...>::type>()));
};

template <class List>
struct TypesOf;
template <class... T>
struct TypesOf<std::tuple<T...>> : TypeList<T...> {};

template <auto Function>
struct KernelTraits;
template <class... T, void (*Function)(T...)>
struct KernelTraits<Function> {
  using Parameters = typename DropLast<T...>::type;
  using Types = TypesOf<Parameters>;
  static void call(const Argument* arguments, Tl& tl) {
    KernelAdapter<Parameters>::template call<Function>(arguments, tl, std::make_index_sequence<Types::count>());
  }
};

}  // namespace detail

/// From `std::tuple<...> kernel_args(int world_size, std::int64_t n_elem, int cube_w, int cube_h)`.
template <auto Function>
constexpr KernelArgs make_kernel_args() {
  using Adapter = detail::ArgsAdapter<Function>;
  return {Adapter::types, Adapter::count, &Adapter::call};
}

/// From `void kernel(Va t_ptr, ..., int sip_rank, int sip_topo_kind, int sip_topo_w, int sip_topo_h, Tl& tl)`.
template <auto Function>
constexpr Kernel make_kernel() {
  using Traits = detail::KernelTraits<Function>;
  return {Traits::Types::types, Traits::Types::count, &Traits::call};
}

/// What a maker of any kind asks for: bits as in Algorithm.
struct AlgorithmTraits {
  const char* name = nullptr;                                ///< for messages
  std::uint32_t operations = 0, scopes = 0, topologies = 0;  ///< none: as in Algorithm
};

/// An algorithm of `kernel_args` and `kernel` (see make_kernel_args and make_kernel) on `directions`.
template <auto KernelArgsFunction, auto KernelFunction>
Algorithm kernel_algorithm(const AlgorithmTraits& traits, std::uint32_t directions) {
  Algorithm algorithm;
  algorithm.name = traits.name;
  algorithm.topology_kinds = &kTopologyKinds;
  algorithm.topo_name_to_kind = &standard_topology_kind;
  algorithm.kernel_args = make_kernel_args<KernelArgsFunction>();
  algorithm.kernel = make_kernel<KernelFunction>();
  algorithm.operations = traits.operations;
  algorithm.scopes = traits.scopes;
  algorithm.topologies = traits.topologies;
  algorithm.directions = directions;
  return algorithm;
}

/// The same with parameters that ccl.yaml may set.
template <auto KernelArgsFunction, auto KernelFunction, std::size_t N>
Algorithm kernel_algorithm(const AlgorithmTraits& traits, std::uint32_t directions, const Parameter (&parameters)[N]) {
  Algorithm algorithm = kernel_algorithm<KernelArgsFunction, KernelFunction>(traits, directions);
  algorithm.parameters = parameters;
  algorithm.parameter_count = N;
  return algorithm;
}

/// An algorithm of step lists: `plan` makes them, `links` says which nodes they join (see Algorithm).
inline Algorithm schedule_algorithm(const AlgorithmTraits& traits, decltype(Algorithm::plan) plan,
                                    decltype(Algorithm::links) links) {
  Algorithm algorithm = kernel_algorithm<&schedule_kernel_args, &schedule_kernel>(traits, 0, kChunkBytes);
  algorithm.plan = plan;
  algorithm.links = links;
  return algorithm;
}

/// An algorithm that leaves everything to the backend.
inline Algorithm pe_to_pe_algorithm(const AlgorithmTraits& traits) {
  Algorithm algorithm = kernel_algorithm<&schedule_kernel_args, &schedule_kernel>(traits, 0);
  algorithm.pe_to_pe = true;
  return algorithm;
}

}  // namespace kernbench::ccl

/// The one symbol of a shared library: `KERNBENCH_CCL_MODULE() { static const Algorithm a = ...; return &a; }`.
#define KERNBENCH_CCL_MODULE() \
  extern "C" __attribute__((visibility("default"))) const ::kernbench::ccl::Algorithm* kernbench_ccl_algorithm()
/// The same for an algorithm that is built in under kernbench.ccl.NAME, a name of the list in ccl/CMakeLists.txt.
#define KERNBENCH_CCL_BUILT_IN(name) extern "C" const ::kernbench::ccl::Algorithm* kernbench_ccl_##name()
