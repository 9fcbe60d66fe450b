#include "runtime/pipeline/calls.h"

#include <cmath>
#include <stdexcept>

namespace kernbench::pipeline {

Named emit_call(const std::string& word, const Bound& in, Emitter& emit) {
  using Id = Emitter::Id;
  const auto one = [](Id id) {
    Named named;
    named.id = id;
    return named;
  };
  const auto arithmetic = [&](Binary op, const char* other) {
    const double alpha = in.number("alpha", 1);
    const Id self = in.tensor("self");
    if (in.is_number(other)) return one(emit.with_number(self, in.number(other) * alpha, op));
    const Id right = in.tensor(other);
    return one(emit.binary(self, alpha == 1 ? right : emit.with_number(right, alpha, Binary::mul), op));
  };
  const auto typed = [&](Id x) { return in.given("dtype") == nullptr ? x : emit.cast(x, in.dtype("dtype")); };
  const auto matrices = [&](const char* a, const char* b, std::int64_t rank) {
    const Id left = in.tensor(a), right = in.tensor(b);
    for (const Id id : {left, right}) {
      if (emit.rank(id) != rank)
        throw EmitError{fmt::format("its operand is {}, which has not {} dimensions", emit.type(id).str(), rank),
                        "use matmul"};
    }
    if (rank == 3 && emit.type(left).shape[0] != emit.type(right).shape[0])
      throw EmitError{fmt::format("{} and {} are not as many matrices", emit.type(left).str(), emit.type(right).str()),
                      "give one for each"};
    return emit.matmul(left, right, false);
  };
  if (word == "mm") return one(matrices("self", "mat2", 2));
  if (word == "bmm") return one(matrices("self", "mat2", 3));
  if (word == "addmm") {
    Id product = matrices("mat1", "mat2", 2), bias = in.tensor("self");
    const double alpha = in.number("alpha", 1), beta = in.number("beta", 1);
    if (alpha != 1) product = emit.with_number(product, alpha, Binary::mul);
    if (beta != 1) bias = emit.with_number(bias, beta, Binary::mul);
    const Id sum = emit.binary(product, bias, Binary::add);
    if (emit.type(sum).shape != emit.type(product).shape)
      throw EmitError{fmt::format("{} does not broadcast to {}", emit.type(bias).str(), emit.type(product).str()),
                      "from the last on, dimensions are equal or 1"};
    return one(sum);
  }
  if (word == "linear") {
    const Id weight = in.tensor("weight");
    if (emit.rank(weight) != 2)
      throw EmitError{fmt::format("weight is {}, no matrix", emit.type(weight).str()), "use matmul"};
    const Id product = emit.matmul(in.tensor("input"), weight, true);
    const auto bias = in.maybe_tensor("bias");
    if (!bias) return one(product);
    if (emit.type(*bias).shape != std::vector<std::int64_t>{emit.type(weight).shape[0]})
      throw EmitError{fmt::format("bias is {}, but weight is {}", emit.type(*bias).str(), emit.type(weight).str()),
                      fmt::format("give {} elements", emit.type(weight).shape[0])};
    return one(emit.binary(product, *bias, Binary::add));
  }
  if (word == "matmul") return one(emit.matmul(in.tensor("self"), in.tensor("other"), false));
  if (word == "add") return arithmetic(Binary::add, "other");
  if (word == "sub") return arithmetic(Binary::sub, "other");
  if (word == "mul") return arithmetic(Binary::mul, "other");
  if (word == "div") return arithmetic(Binary::div, "other");
  if (word == "pow") return arithmetic(Binary::pow, "exponent");
  if (word == "gelu") {
    const std::string how = in.text("approximate");
    if (!how.empty() && how != "none" && how != "tanh")
      throw EmitError{fmt::format("'approximate' is {}", quote(how)), "give 'none' or 'tanh'"};
    return one(emit.unary(in.tensor("self"), how == "tanh" ? Unary::gelu_tanh : Unary::gelu));
  }
  static const std::map<std::string, Unary> kUnary = {
      {"rsqrt", Unary::rsqrt}, {"sqrt", Unary::sqrt}, {"neg", Unary::neg},         {"exp", Unary::exp},
      {"relu", Unary::relu},   {"silu", Unary::silu}, {"sigmoid", Unary::sigmoid}, {"tanh", Unary::tanh}};
  if (const auto found = kUnary.find(word); found != kUnary.end())
    return one(emit.unary(in.tensor("self"), found->second));
  if (word == "softmax") return one(emit.softmax(typed(in.tensor("self")), in.integer("dim")));
  if (word == "layer_norm" || word == "rms_norm") {
    const auto weight = in.maybe_tensor("weight");
    const auto bias = word == "layer_norm" ? in.maybe_tensor("bias") : std::nullopt;
    const Id x = in.tensor("input");
    // rms_norm without eps: torch.finfo(dtype).eps
    const DType dtype = emit.type(x).dtype;
    const double epsilon = dtype == DType::f64   ? 0x1p-52
                           : dtype == DType::f32 ? 0x1p-23
                           : dtype == DType::f16 ? 0x1p-10
                                                 : 0x1p-7;
    return one(emit.norm(x, in.integers("normalized_shape"), weight ? &*weight : nullptr, bias ? &*bias : nullptr,
                         in.number("eps", word == "layer_norm" ? 1e-5 : epsilon), word == "rms_norm"));
  }
  if (word == "embedding") return one(emit.embedding(in.tensor("weight"), in.tensor("indices")));
  if (word == "view") return one(emit.view(in.tensor("self"), in.integers("size")));
  if (word == "reshape") return one(emit.view(in.tensor("self"), in.integers("shape")));
  if (word == "clone") return one(emit.view(in.tensor("self"), emit.type(in.tensor("self")).shape));
  if (word == "unsqueeze") {
    const Id x = in.tensor("self");
    std::vector<std::int64_t> shape = emit.type(x).shape;
    const auto ranks = static_cast<std::int64_t>(shape.size());
    std::int64_t at = in.integer("dim");
    if (at < -ranks - 1 || at > ranks)
      throw EmitError{fmt::format("dim is {}, but {} has {} dimensions", at, emit.type(x).str(), ranks),
                      fmt::format("give {} to {}", -ranks - 1, ranks)};
    if (at < 0) at += ranks + 1;
    shape.insert(shape.begin() + at, 1);
    return one(emit.view(x, shape));
  }
  if (word == "squeeze") {
    const Id x = in.tensor("self");
    std::vector<std::int64_t> shape = emit.type(x).shape;
    const std::int64_t at = emit.dim(x, in.integer("dim"));
    if (shape[static_cast<std::size_t>(at)] == 1) shape.erase(shape.begin() + at);
    return one(emit.view(x, shape));
  }
  if (word == "transpose") return one(emit.transpose(in.tensor("self"), in.integer("dim0"), in.integer("dim1")));
  if (word == "t") {
    const Id x = in.tensor("self");
    if (emit.rank(x) > 2)
      throw EmitError{fmt::format("its operand is {}, of more than two dimensions", emit.type(x).str()),
                      "use transpose"};
    return one(emit.rank(x) < 2 ? x : emit.transpose(x, 0, 1));
  }
  if (word == "permute") return one(emit.permute(in.tensor("self"), in.integers("dims")));
  if (word == "expand") return one(emit.expand(in.tensor("self"), in.integers("size")));
  if (word == "cat") return one(emit.cat(in.tensors("tensors"), in.integer("dim")));
  if (word == "split") {
    const char* sizes = in.given("split_size") != nullptr ? "split_size" : "split_sizes";
    Named made = one(in.tensor("self"));
    made.split = true;
    made.dim = emit.dim(made.id, in.integer("dim"));
    made.sizes =
        emit.split_sizes(made.id, in.integers(sizes), in.given(sizes)->kind == RawArgument::Kind::integer, made.dim);
    return made;
  }
  if (word == "slice") {
    constexpr std::int64_t kEnd = std::int64_t{1} << 60;  // FX gives 2^63 - 1 for "to the end"
    const auto end = in.given("end");
    const bool far = end != nullptr && end->kind == RawArgument::Kind::number && end->number > 1e18;
    return one(emit.slice(in.tensor("self"), in.integer("dim"), in.integer("start"),
                          far ? kEnd : in.integer("end", kEnd), in.integer("step", 1)));
  }
  if (word == "select") return one(emit.select(in.tensor("self"), in.integer("dim"), in.integer("index")));
  if (word == "mean" || word == "sum" || word == "amax") {
    const Reduction kind = word == "mean" ? Reduction::mean : word == "sum" ? Reduction::sum : Reduction::amax;
    return one(emit.reduce(typed(in.tensor("self")), in.integers("dim"), in.flag("keepdim"), kind));
  }
  if (word == "where") {
    const auto side = [&](const char* name, Id like) {
      if (!in.is_number(name)) return in.tensor(name);
      // Whatever is there, x^0 is 1; of integers 0 x is 0.
      if (is_float(emit.type(like).dtype))
        return emit.with_number(emit.with_number(like, 0, Binary::pow), in.number(name), Binary::mul);
      return emit.with_number(emit.with_number(like, 0, Binary::mul), in.number(name), Binary::add);
    };
    if (in.is_number("self") && in.is_number("other"))
      throw EmitError{"both sides are numbers", "give a tensor for one"};
    const Id a = in.is_number("self") ? side("self", in.tensor("other")) : in.tensor("self");
    return one(emit.where(in.tensor("condition"), a, side("other", a)));
  }
  if (word == "cast") return one(emit.cast(in.tensor("self"), in.dtype("dtype")));
  if (word == "scaled_dot_product_attention") {
    if (in.number("dropout_p", 0) != 0) throw EmitError{"'dropout_p' is not 0", "this is inference"};
    if (in.flag("enable_gqa")) throw EmitError{"'enable_gqa' is true", "expand keys and values to the queries' heads"};
    const auto mask = in.maybe_tensor("attn_mask");
    const Id q = in.tensor("query");
    const double width = emit.rank(q) == 0 ? 1 : static_cast<double>(emit.type(q).shape.back());
    return one(emit.attention(q, in.tensor("key"), in.tensor("value"), mask ? &*mask : nullptr, in.flag("is_causal"),
                              in.number("scale", 1 / std::sqrt(width))));
  }
  throw std::logic_error("operation '" + word + "' has no meaning");
}

}  // namespace kernbench::pipeline
