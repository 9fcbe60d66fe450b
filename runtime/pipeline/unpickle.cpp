#include "runtime/pipeline/unpickle.h"

#include <fmt/format.h>

#include <unordered_map>

#include "runtime/pipeline/mapped_zip.h"

namespace kernbench::pipeline {

namespace {

constexpr const char* kStateDict = "save the state dict alone: torch.save(model.state_dict(), FILE)";

/// Number of an object of the pickle.
using Ref = std::uint32_t;

struct Object {
  enum class Kind : std::uint8_t { none, boolean, integer, real, text, tuple, list, dict, global, storage, tensor };
  Kind kind = Kind::none;
  std::int64_t number = 0;
  std::string text;        ///< of a global "module.name"
  std::vector<Ref> items;  ///< of a dictionary: key, value, key, value...; of a tensor: its storage
  PickledTensor tensor;    ///< of a storage: type, key and bytes
};

struct StoredClass {
  const char* name;
  std::optional<DType> dtype;
  std::uint64_t bytes;
};
/// source: torch/storage.py, _dtype_to_storage_type_map. Of no type: of elements of one byte, typed by the tensor.
constexpr StoredClass kStorages[] = {{"torch.DoubleStorage", DType::f64, 8},
                                     {"torch.FloatStorage", DType::f32, 4},
                                     {"torch.HalfStorage", DType::f16, 2},
                                     {"torch.BFloat16Storage", DType::bf16, 2},
                                     {"torch.LongStorage", DType::i64, 8},
                                     {"torch.IntStorage", DType::i32, 4},
                                     {"torch.ShortStorage", DType::i16, 2},
                                     {"torch.CharStorage", DType::i8, 1},
                                     {"torch.BoolStorage", DType::boolean, 1},
                                     {"torch.ByteStorage", std::nullopt, 1},
                                     {"torch.ComplexFloatStorage", std::nullopt, 8},
                                     {"torch.ComplexDoubleStorage", std::nullopt, 16},
                                     {"torch.storage.UntypedStorage", std::nullopt, 1},
                                     {"torch.UntypedStorage", std::nullopt, 1}};
/// Types that have no class of storage; source: torch/_utils.py, _rebuild_tensor_v3.
constexpr std::pair<const char*, DType> kTypes[] = {{"torch.float8_e4m3fn", DType::f8e4m3},
                                                    {"torch.float8_e5m2", DType::f8e5m2}};

class Unpickler {
 public:
  explicit Unpickler(const std::string& pickle) : pickle_(pickle) {}

  std::vector<PickledTensor> run() {
    while (!step()) {
    }
    if (stack_.size() != 1 || !marks_.empty()) broken("ends with more than one object");
    walk("", stack_.back(), 0);
    return std::move(found_);
  }

 private:
  using Kind = Object::Kind;

  [[noreturn]] void broken(const std::string& text) const {
    throw BrokenFile(fmt::format("its pickle {}, at byte {}", text, at_));
  }

  std::uint64_t number(std::size_t bytes) {
    if (bytes > pickle_.size() - at_) broken("is cut off");
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(pickle_[at_ + i])) << (8 * i);
    at_ += bytes;
    return value;
  }
  std::string bytes(std::uint64_t count) {
    if (count > pickle_.size() - at_) broken("is cut off");
    at_ += count;
    return pickle_.substr(at_ - count, count);
  }
  std::string line() {
    const std::size_t end = pickle_.find('\n', at_);
    if (end == std::string::npos) broken("is cut off");
    const std::string text = pickle_.substr(at_, end - at_);
    at_ = end + 1;
    return text;
  }

  Ref make(Kind kind, std::int64_t value = 0, std::string text = {}, std::vector<Ref> items = {}) {
    Object object;
    object.kind = kind;
    object.number = value;
    object.text = std::move(text);
    object.items = std::move(items);
    objects_.push_back(std::move(object));
    return static_cast<Ref>(objects_.size() - 1);
  }
  void push(Ref object) { stack_.push_back(object); }
  Ref pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) broken("takes an object that is not there");
    const Ref top = stack_.back();
    stack_.pop_back();
    return top;
  }
  Ref top() {
    const Ref object = pop();
    push(object);
    return object;
  }
  std::vector<Ref> pop_many(std::size_t count) {
    std::vector<Ref> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  }
  std::vector<Ref> pop_mark() {
    if (marks_.empty()) broken("has no mark where one is needed");
    const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Ref> items(from, stack_.end());
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return items;
  }
  Object& of_kind(Ref ref, Kind kind, const char* what) {
    if (objects_[ref].kind != kind) broken(fmt::format("has something else where {} is needed", what));
    return objects_[ref];
  }
  void remember(std::uint64_t place) { memo_[place] = top(); }
  void recall(std::uint64_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) broken("refers to an object that is not there");
    push(found->second);
  }
  void extend(Kind kind, const char* what, const std::vector<Ref>& items) {
    Object& target = of_kind(top(), kind, what);
    if (kind == Kind::dict && items.size() % 2 != 0) broken("has a key without a value");
    target.items.insert(target.items.end(), items.begin(), items.end());
  }

  /// One opcode; true at the end. source: Lib/pickletools.py
  bool step() {
    const auto code = static_cast<unsigned char>(number(1));
    switch (code) {
      case 0x80: {  // PROTO
        const std::uint64_t protocol = number(1);
        if (protocol < 2 || protocol > 5) broken(fmt::format("is of protocol {}; 2 to 5 are read", protocol));
        return false;
      }
      case 0x95:  // FRAME
        number(8);
        return false;
      case '.':
        return true;
      case '(':
        marks_.push_back(stack_.size());
        return false;
      case 'N':
        push(make(Kind::none));
        return false;
      case 0x88:
      case 0x89:
        push(make(Kind::boolean, code == 0x88));
        return false;
      case 'J':
        push(make(Kind::integer, static_cast<std::int32_t>(number(4))));
        return false;
      case 'K':
        push(make(Kind::integer, static_cast<std::int64_t>(number(1))));
        return false;
      case 'M':
        push(make(Kind::integer, static_cast<std::int64_t>(number(2))));
        return false;
      case 0x8a: {  // LONG1: of two's complement
        const std::uint64_t size = number(1);
        if (size > 8) broken("has an integer of more than 8 bytes");
        const std::uint64_t raw = number(size), unused = 64 - 8 * size;
        push(make(Kind::integer, size == 0 ? 0 : static_cast<std::int64_t>(raw << unused) >> unused));
        return false;
      }
      case 'G':
        bytes(8);
        push(make(Kind::real));
        return false;
      case 'X':
        push(make(Kind::text, 0, bytes(number(4))));
        return false;
      case 0x8c:
        push(make(Kind::text, 0, bytes(number(1))));
        return false;
      case 0x8d:
        push(make(Kind::text, 0, bytes(number(8))));
        return false;
      case ')':
        push(make(Kind::tuple));
        return false;
      case 't':
        push(make(Kind::tuple, 0, {}, pop_mark()));
        return false;
      case 0x85:
      case 0x86:
      case 0x87:
        push(make(Kind::tuple, 0, {}, pop_many(code - 0x84U)));
        return false;
      case ']':
        push(make(Kind::list));
        return false;
      case 'a':
        extend(Kind::list, "a list", pop_many(1));
        return false;
      case 'e':
        extend(Kind::list, "a list", pop_mark());
        return false;
      case '}':
        push(make(Kind::dict));
        return false;
      case 's':
        extend(Kind::dict, "a dictionary", pop_many(2));
        return false;
      case 'u':
        extend(Kind::dict, "a dictionary", pop_mark());
        return false;
      case 'q':
        remember(number(1));
        return false;
      case 'r':
        remember(number(4));
        return false;
      case 0x94:  // MEMOIZE
        remember(memo_.size());
        return false;
      case 'h':
        recall(number(1));
        return false;
      case 'j':
        recall(number(4));
        return false;
      case 'c': {
        const std::string module = line();
        global(module + "." + line());
        return false;
      }
      case 0x93: {  // STACK_GLOBAL
        const std::vector<Ref> names = pop_many(2);
        global(of_kind(names[0], Kind::text, "a name").text + "." + of_kind(names[1], Kind::text, "a name").text);
        return false;
      }
      case 'Q':
        storage();
        return false;
      case 'R':
        reduce();
        return false;
      case 'b': {  // BUILD: the attributes of a state dict
        const Ref state = pop();
        of_kind(state, Kind::dict, "a dictionary");
        of_kind(top(), Kind::dict, "a dictionary");
        return false;
      }
      default:
        --at_;
        broken(fmt::format("has the opcode 0x{:02x}, which torch.save does not write for tensors", code));
    }
  }

  static const StoredClass* storage_class(const std::string& name) {
    for (const StoredClass& known : kStorages) {
      if (name == known.name) return &known;
    }
    return nullptr;
  }
  static std::optional<DType> type_of_global(const std::string& name) {
    for (const auto& [known, dtype] : kTypes) {
      if (name == known) return dtype;
    }
    return std::nullopt;
  }

  void global(const std::string& name) {
    const bool known = name == "collections.OrderedDict" || name == "torch.Size" ||
                       name == "torch._utils._rebuild_tensor_v2" || name == "torch._utils._rebuild_tensor_v3" ||
                       name == "torch._utils._rebuild_parameter" || storage_class(name) != nullptr ||
                       type_of_global(name);
    if (!known) throw BrokenFile(fmt::format("wants the Python object '{}', which is not loaded", name), kStateDict);
    push(make(Kind::global, 0, name));
  }

  /// ('storage', class, key, device, elements)
  void storage() {
    const std::vector<Ref> id = of_kind(pop(), Kind::tuple, "a storage").items;
    if (id.size() != 5 || of_kind(id[0], Kind::text, "a storage").text != "storage") broken("has a wrong storage");
    const StoredClass* stored = storage_class(of_kind(id[1], Kind::global, "a class of storages").text);
    const std::int64_t elements = of_kind(id[4], Kind::integer, "a size").number;
    if (stored == nullptr || elements < 0 || elements > std::int64_t{1} << 56) broken("has a wrong storage");
    PickledTensor tensor;
    tensor.key = of_kind(id[2], Kind::text, "a key").text;
    tensor.dtype = stored->dtype;
    tensor.held_bytes = static_cast<std::uint64_t>(elements) * stored->bytes;
    push(make(Kind::storage));
    objects_.back().tensor = tensor;
  }

  std::vector<std::int64_t> sizes(Ref ref) {
    std::vector<std::int64_t> made;
    for (const Ref item : of_kind(ref, Kind::tuple, "a tuple").items)
      made.push_back(of_kind(item, Kind::integer, "an integer").number);
    return made;
  }

  void reduce() {
    const std::vector<Ref> arguments = of_kind(pop(), Kind::tuple, "a tuple").items;
    const std::string callee = of_kind(pop(), Kind::global, "a function").text;
    const auto need = [&](std::size_t least, std::size_t most) {
      if (arguments.size() < least || arguments.size() > most) broken("calls " + callee + " with other arguments");
    };
    if (callee == "collections.OrderedDict") {
      need(0, 0);
      push(make(Kind::dict));
    } else if (callee == "torch.Size") {
      need(1, 1);
      of_kind(arguments[0], Kind::tuple, "a tuple");
      push(arguments[0]);
    } else if (callee == "torch._utils._rebuild_parameter") {
      need(3, 3);
      of_kind(arguments[0], Kind::tensor, "a tensor");
      push(arguments[0]);
    } else if (callee == "torch._utils._rebuild_tensor_v2" || callee == "torch._utils._rebuild_tensor_v3") {
      const bool typed = callee.back() == '3';
      need(typed ? 7 : 6, typed ? 8 : 7);
      PickledTensor tensor = of_kind(arguments[0], Kind::storage, "a storage").tensor;
      tensor.offset = of_kind(arguments[1], Kind::integer, "an offset").number;
      tensor.shape = sizes(arguments[2]);
      tensor.strides = sizes(arguments[3]);
      if (typed) tensor.dtype = type_of_global(of_kind(arguments[6], Kind::global, "a type").text);
      push(make(Kind::tensor));
      objects_.back().tensor = std::move(tensor);
    } else {
      broken("calls " + callee);
    }
  }

  void walk(const std::string& name, Ref ref, int depth) {
    constexpr int kDeepest = 64, kMost = 10'000'000;
    if (depth > kDeepest || ++walked_ > kMost) broken("holds objects in one another without an end");
    const Object& object = objects_[ref];
    const auto below = [&](const std::string& key) { return name.empty() ? key : name + "." + key; };
    if (object.kind == Kind::tensor) {
      found_.push_back(object.tensor);
      found_.back().name = name;
    } else if (object.kind == Kind::dict) {
      for (std::size_t i = 0; i < object.items.size(); i += 2) {
        const Object& key = objects_[object.items[i]];
        if (key.kind == Kind::text) walk(below(key.text), object.items[i + 1], depth + 1);
        if (key.kind == Kind::integer) walk(below(std::to_string(key.number)), object.items[i + 1], depth + 1);
      }
    } else if (object.kind == Kind::list || object.kind == Kind::tuple) {
      for (std::size_t i = 0; i < object.items.size(); ++i) walk(below(std::to_string(i)), object.items[i], depth + 1);
    }
  }

  const std::string& pickle_;
  std::size_t at_ = 0;
  std::vector<Object> objects_;
  std::vector<Ref> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::unordered_map<std::uint64_t, Ref> memo_;
  std::vector<PickledTensor> found_;
  int walked_ = 0;
};

}  // namespace

std::vector<PickledTensor> unpickle_tensors(const std::string& pickle) { return Unpickler(pickle).run(); }

}  // namespace kernbench::pipeline
