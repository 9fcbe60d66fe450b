#include "sc_main/check/tp_reference.h"

#include <algorithm>
#include <cmath>

#include "sc_main/check/numerics.h"

namespace kernbench {

namespace {
using HostRows = std::vector<double>;

HostRows kept_in(HostRows values, DType dtype) {
  std::uint8_t raw[8] = {};
  for (double& value : values) {
    store_element(raw, dtype, 0, value);
    value = load_element(raw, dtype, 0);
  }
  return values;
}

void add_to(HostRows& x, const HostRows& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}
}  // namespace

HostRows HostTransformer::embed(const std::vector<std::int64_t>& tokens, std::int64_t length) const {
  const tp::WeightPattern table = weights("embedding");
  const bool learned = model.position == tp::PositionKind::learned;
  const tp::WeightPattern positions = learned ? weights("positions") : tp::WeightPattern();
  HostRows x;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::int64_t position = context + static_cast<std::int64_t>(i) % length;
    for (std::int64_t c = 0; c < model.width; ++c)
      x.push_back(table(tokens[i], c) + (learned ? positions(position, c) : 0.0));
  }
  return kept_in(std::move(x), dtype);
}

HostRows HostTransformer::linear(const Values& x, std::int64_t in, std::int64_t out, const std::string& name,
                                 bool round) const {
  const std::size_t rows = x.size() / static_cast<std::size_t>(in), columns = static_cast<std::size_t>(out);
  const tp::WeightPattern weight = weights(name);
  HostRows y(rows * columns), line(columns);
  for (std::int64_t k = 0; k < in; ++k) {
    for (std::int64_t c = 0; c < out; ++c) line[static_cast<std::size_t>(c)] = weight(k, c);
    for (std::size_t r = 0; r < rows; ++r) {
      const double factor = x[r * static_cast<std::size_t>(in) + static_cast<std::size_t>(k)];
      for (std::size_t c = 0; c < columns; ++c) y[r * columns + c] += factor * line[c];
    }
  }
  if (model.biases) {
    const tp::WeightPattern bias = weights(name + ".bias");
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias(0, static_cast<std::int64_t>(i % columns));
  }
  return round ? kept_in(std::move(y), dtype) : y;
}

HostRows HostTransformer::norm(const Values& x, const std::string& name) const {
  const auto width = static_cast<std::size_t>(model.width);
  const bool centred = model.norm == tp::NormKind::layer;
  const tp::WeightPattern weight = weights(name);
  const tp::WeightPattern bias = centred ? weights(name + ".bias") : tp::WeightPattern();
  HostRows y(x.size());
  for (std::size_t row = 0; row < x.size(); row += width) {
    double mean = 0, square = 0;
    for (std::size_t i = 0; centred && i < width; ++i) mean += x[row + i] / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i)
      square += (x[row + i] - mean) * (x[row + i] - mean) / static_cast<double>(width);
    const double scale = 1 / std::sqrt(square + model.epsilon);
    for (std::size_t i = 0; i < width; ++i) {
      const auto col = static_cast<std::int64_t>(i);
      y[row + i] = (x[row + i] - mean) * scale * weight(0, col) + (centred ? bias(0, col) : 0.0);
    }
  }
  return kept_in(std::move(y), dtype);
}

void HostTransformer::turn(Values& x, std::int64_t heads, std::int64_t length) const {
  if (model.position != tp::PositionKind::rotary) return;
  const std::int64_t dim = model.head_dim, half = dim / 2;
  const std::int64_t rows = static_cast<std::int64_t>(x.size()) / (heads * dim);
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto position = static_cast<double>(context + row % length);
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = position * tp::rotary_frequency(model.rope_theta, model.rope_scaling, i, dim);
      const double cosine = std::cos(angle), sine = std::sin(angle);
      for (std::int64_t head = 0; head < heads; ++head) {
        const auto at = static_cast<std::size_t>((row * heads + head) * dim + i),
                   other = at + static_cast<std::size_t>(half);
        const double a = x[at], b = x[other];
        x[at] = a * cosine - b * sine;
        x[other] = b * cosine + a * sine;
      }
    }
  }
  x = kept_in(std::move(x), dtype);
}

void HostTransformer::attend(const Values& q, const Values& k, const Values& v, std::int64_t entry, std::int64_t length,
                             std::size_t layer, Values& into) const {
  const std::int64_t dim = model.head_dim, group = model.heads / model.kv_heads, all = context + length;
  const double scale = 1 / std::sqrt(static_cast<double>(dim));
  // Of one key/value head, all positions: those of the context come from its contents.
  HostRows key(static_cast<std::size_t>(all * dim)), value(key.size());
  for (std::int64_t kv = 0; kv < model.kv_heads; ++kv) {
    for (std::int64_t s = 0; s < all; ++s) {
      for (std::int64_t i = 0; i < dim; ++i) {
        const auto to = static_cast<std::size_t>(s * dim + i);
        const auto from = static_cast<std::size_t>(((entry * length + s - context) * model.kv_heads + kv) * dim + i);
        key[to] = s < context ? keys(layer, entry, kv, s, i) : k[from];
        value[to] = s < context ? values(layer, entry, kv, s, i) : v[from];
      }
    }
    for (std::int64_t t = 0; t < length; ++t) {
      for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
        const auto query = static_cast<std::size_t>(((entry * length + t) * model.heads + h) * dim);
        HostRows weight;
        double most = -1e300, sum = 0;
        for (std::int64_t s = 0; s <= context + t; ++s) {
          double score = 0;
          for (std::int64_t i = 0; i < dim; ++i)
            score += q[query + static_cast<std::size_t>(i)] * key[static_cast<std::size_t>(s * dim + i)];
          weight.push_back(score * scale);
          most = std::max(most, weight.back());
        }
        for (double& one : weight) sum += one = std::exp(one - most);
        for (std::int64_t i = 0; i < dim; ++i) {
          double result = 0;
          for (std::size_t s = 0; s < weight.size(); ++s)
            result += weight[s] * value[s * static_cast<std::size_t>(dim) + static_cast<std::size_t>(i)];
          into[query + static_cast<std::size_t>(i)] = result / sum;
        }
      }
    }
  }
}

HostRows HostTransformer::attention(const Values& x, std::int64_t length, std::size_t layer,
                                    const std::string& name) const {
  const std::int64_t queries = model.heads * model.head_dim, kept = model.kv_heads * model.head_dim;
  HostRows q = linear(x, model.width, queries, name + ".q", true);
  HostRows k = linear(x, model.width, kept, name + ".k", true);
  const HostRows v = linear(x, model.width, kept, name + ".v", true);
  turn(q, model.heads, length);
  turn(k, model.kv_heads, length);
  HostRows result(q.size());
  const auto entries = static_cast<std::int64_t>(x.size()) / (model.width * length);
  for (std::int64_t entry = 0; entry < entries; ++entry) attend(q, k, v, entry, length, layer, result);
  return linear(kept_in(std::move(result), dtype), queries, model.width, name + ".out", true);
}

HostRows HostTransformer::mlp(const Values& x, const std::string& name) const {
  HostRows up = linear(x, model.width, model.mlp_width, name + ".up", false);
  if (model.gated) {
    const HostRows gate = linear(x, model.width, model.mlp_width, name + ".gate", false);
    for (std::size_t i = 0; i < up.size(); ++i) up[i] *= activate(model.activation, gate[i]);
  } else {
    for (double& value : up) value = activate(model.activation, value);
  }
  return linear(kept_in(std::move(up), dtype), model.mlp_width, model.width, name + ".down", true);
}

HostRows HostTransformer::experts(const Values& x, std::size_t layer, const std::string& name) const {
  const auto width = static_cast<std::size_t>(model.width), k = static_cast<std::size_t>(model.experts_per_token),
             count = static_cast<std::size_t>(model.experts), rows = x.size() / width;
  const HostRows logits = linear(x, model.width, model.experts, name + ".router", true);
  const double tolerance = transformer_tolerance(dtype, layers, logits);
  std::vector<std::vector<std::pair<std::size_t, double>>> of_expert(count);  // rows and weights
  for (std::size_t row = 0; row < rows; ++row) {
    const double* own = logits.data() + row * count;
    std::vector<std::int32_t> best(count);
    for (std::size_t e = 0; e < count; ++e) best[e] = static_cast<std::int32_t>(e);
    std::stable_sort(best.begin(), best.end(), [&](std::int32_t a, std::int32_t b) { return own[a] > own[b]; });
    const double least = own[best[k - 1]];
    best.resize(k);
    std::vector<std::int32_t> chosen = best;
    if (!routing.empty()) {
      const auto begin = routing[layer].begin() + static_cast<std::ptrdiff_t>(row * k);
      chosen.assign(begin, begin + static_cast<std::ptrdiff_t>(k));
    }
    double sum = 0;
    std::vector<bool> seen(count);
    for (const std::int32_t choice : chosen) {
      const auto expert = static_cast<std::size_t>(choice < 0 ? ~choice : choice);
      if (own[expert] < least - 2 * tolerance || seen[expert]) ++misrouted;
      seen[expert] = true;
      sum += std::exp(own[expert] - own[best.front()]);
    }
    for (const std::int32_t choice : chosen) {
      if (choice < 0) continue;
      const auto expert = static_cast<std::size_t>(choice);
      of_expert[expert].emplace_back(row, std::exp(own[expert] - own[best.front()]) / sum);
    }
  }
  HostRows y(x.size());
  for (std::size_t expert = 0; expert < count; ++expert) {
    if (of_expert[expert].empty()) continue;
    HostRows inputs;
    for (const auto& [row, weight] : of_expert[expert]) {
      const auto begin = x.begin() + static_cast<std::ptrdiff_t>(row * width);
      inputs.insert(inputs.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
    }
    const HostRows results = mlp(inputs, name + ".expert" + std::to_string(expert));
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto& [row, weight] = of_expert[expert][i / width];
      y[row * width + i % width] += weight * results[i];
    }
  }
  return kept_in(std::move(y), dtype);
}

HostRows HostTransformer::run(Values x, std::int64_t length) const {
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string name = "layer" + std::to_string(i);
    add_to(x, attention(norm(x, name + ".attention_norm"), length, static_cast<std::size_t>(i), name + ".attention"));
    x = kept_in(std::move(x), dtype);
    const Values normalised = norm(x, name + ".mlp_norm");
    add_to(x, model.mixture() ? experts(normalised, static_cast<std::size_t>(i), name + ".moe")
                              : mlp(normalised, name + ".mlp"));
    x = kept_in(std::move(x), dtype);
  }
  return x;
}

HostRows HostTransformer::logits(const Values& x) const {
  const HostRows last = norm(x, "norm");
  const tp::WeightPattern table = weights(model.tied ? "embedding" : "output");
  const auto rows = last.size() / static_cast<std::size_t>(model.width);
  HostRows y(rows * static_cast<std::size_t>(model.vocabulary));
  for (std::int64_t token = 0; token < model.vocabulary; ++token) {
    for (std::int64_t k = 0; k < model.width; ++k) {
      const double weight = model.tied ? table(token, k) : table(k, token);
      for (std::size_t row = 0; row < rows; ++row) {
        y[row * static_cast<std::size_t>(model.vocabulary) + static_cast<std::size_t>(token)] +=
            weight * last[row * static_cast<std::size_t>(model.width) + static_cast<std::size_t>(k)];
      }
    }
  }
  return y;
}

std::uint64_t wrong_drops(const std::vector<std::int32_t>& choices, std::int64_t per_token, std::int64_t experts,
                          std::int64_t ranks, double capacity_factor) {
  const std::int64_t all = static_cast<std::int64_t>(choices.size()), tokens = all / per_token,
                     of_rank = (tokens + ranks - 1) / ranks * per_token;
  const double share = capacity_factor * static_cast<double>(of_rank) / static_cast<double>(experts);
  const std::int64_t capacity = capacity_factor > 0 ? static_cast<std::int64_t>(std::ceil(share)) : all;
  std::uint64_t wrong = 0;
  std::vector<std::int64_t> sent;
  for (std::int64_t i = 0; i < all; ++i) {
    if (i % of_rank == 0) sent.assign(static_cast<std::size_t>(experts), 0);
    const std::int32_t choice = choices[static_cast<std::size_t>(i)];
    std::int64_t& before = sent[static_cast<std::size_t>(choice < 0 ? ~choice : choice)];
    if ((choice < 0) != (before++ >= capacity)) ++wrong;
  }
  return wrong;
}

double HostTransformer::logit_scale(const Values& x) const {
  constexpr std::int64_t kFew = 64;
  if (model.vocabulary > kFew) return 0;
  const HostRows last = norm(x, "norm");
  const tp::WeightPattern table = weights(model.tied ? "embedding" : "output");
  double most = 0;
  for (std::size_t row = 0; row < last.size() / static_cast<std::size_t>(model.width); ++row) {
    for (std::int64_t token = 0; token < model.vocabulary; ++token) {
      double squares = 0;
      for (std::int64_t k = 0; k < model.width; ++k) {
        const double product = (model.tied ? table(token, k) : table(k, token)) *
                               last[row * static_cast<std::size_t>(model.width) + static_cast<std::size_t>(k)];
        squares += product * product;
      }
      most = std::max(most, std::sqrt(squares));
    }
  }
  return most;
}

double transformer_tolerance(DType dtype, std::int64_t layers, const std::vector<double>& expected, double most) {
  for (const double value : expected) most = std::max(most, std::abs(value));
  return 16 * static_cast<double>(layers + 1) * unit_roundoff(dtype) * most;
}

}  // namespace kernbench
