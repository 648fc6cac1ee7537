#include "cpu/backend_experts.hpp"
#include "model_session.hpp"
#include "quant/quantize.hpp"
#include "test.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace mashbox {
namespace {

using cpu::ExpertChoice;
using model::Activation;
using model::Gating;
using quant::Type;
using test::check;
using test::Test;

using Random = std::mt19937;
constexpr float NaN = std::numeric_limits<float>::quiet_NaN(), Infinity = std::numeric_limits<float>::infinity();

std::vector<float> randomValues(size_t n, Random& random, float deviation = 1) {
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

// Routing

/// The definition, in double and by sorting everything.
std::vector<std::pair<uint32_t, double>> chooseByDefinition(const cpu::RouterRule& rule, const std::vector<float>& logits) {
  const size_t experts = rule.experts;
  std::vector<double> score(logits.begin(), logits.end());
  const double most = *std::max_element(score.begin(), score.end());
  double total = 0;
  for (const double x : score) total += std::exp(x - most);
  if (rule.gating == Gating::Softmax)
    for (double& x : score) x = std::exp(x - most) / total;
  if (rule.gating == Gating::Sigmoid)
    for (double& x : score) x = 1 / (1 + std::exp(-x));
  if (rule.gating == Gating::RootSoftplus)
    for (double& x : score) x = std::sqrt(std::log1p(std::exp(x)));
  std::vector<double> selection = score;
  for (size_t e = 0; rule.selectionBias && e < experts; ++e) selection[e] += rule.selectionBias[e];
  const auto ranked = [](const std::vector<double>& values) {
    std::vector<uint32_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return values[a] > values[b]; });
    return order;
  };
  if (rule.groups > 1) {
    const size_t length = experts / rule.groups;
    std::vector<double> groups;
    for (size_t g = 0; g < rule.groups; ++g) {
      std::vector<double> members(selection.begin() + ptrdiff_t(g * length), selection.begin() + ptrdiff_t((g + 1) * length));
      std::sort(members.rbegin(), members.rend());
      groups.push_back(members[0] + (length > 1 ? members[1] : 0));
    }
    const auto order = ranked(groups);
    for (size_t i = rule.usedGroups; i < rule.groups; ++i)
      for (size_t e = order[i] * length; e < (order[i] + 1) * length; ++e) selection[e] = -Infinity;
  }
  auto order = ranked(selection);
  order.resize(rule.used);
  std::sort(order.begin(), order.end());
  double sum = 0, chosenTotal = 0;
  for (const uint32_t e : order) chosenTotal += std::exp(logits[e] - most);
  std::vector<std::pair<uint32_t, double>> chosen;
  for (const uint32_t e : order) chosen.emplace_back(e, rule.gating == Gating::SoftmaxOfSelected ? std::exp(logits[e] - most) / chosenTotal : score[e]);
  for (const auto& [e, w] : chosen) sum += w;
  for (auto& [e, w] : chosen) w *= rule.scale / (rule.normalized ? std::max(sum, 6.103515625e-5) : 1);
  return chosen;
}

std::vector<ExpertChoice> choose(const cpu::RouterRule& rule, std::vector<float> logits, cpu::Isa isa = cpu::detectIsa()) {
  std::vector<ExpertChoice> out(rule.used);
  cpu::chooseExperts(rule, cpu::kernels(isa), logits.data(), out.data());
  return out;
}

std::vector<uint32_t> ids(const std::vector<ExpertChoice>& choices) {
  std::vector<uint32_t> out;
  for (const ExpertChoice& choice : choices) out.push_back(choice.expert);
  return out;
}

const Test routing{"experts: routing equals its definition for every gating, bias, group limit and size", [] {
  Random random(3);
  for (const cpu::Isa isa : test::availableTiers())
    for (int i = 0; i < 600; ++i) {
      cpu::RouterRule rule;
      rule.gating = std::array{Gating::Softmax, Gating::Sigmoid, Gating::RootSoftplus, Gating::SoftmaxOfSelected}[random() % 4];
      rule.groups = std::array{1u, 1u, 2u, 4u}[random() % 4];
      rule.experts = rule.groups * (1 + random() % 40);
      rule.usedGroups = 1 + random() % rule.groups;
      rule.used = 1 + random() % std::min(12u, rule.experts / rule.groups * rule.usedGroups);
      rule.normalized = random() % 2;
      rule.scale = random() % 2 ? 1 : 2.5f;
      const auto bias = randomValues(rule.experts, random, 0.3f);
      if (random() % 2) rule.selectionBias = bias.data();
      const auto logits = randomValues(rule.experts, random, rule.gating != Gating::Sigmoid && random() % 2 ? 8 : 1);
      const auto want = chooseByDefinition(rule, logits);
      const auto got = choose(rule, logits, isa);
      for (size_t k = 0; k < want.size(); ++k) {
        check(got[k].expert == want[k].first, "the same experts, by rising id");
        check(std::abs(got[k].weight - want[k].second) <= 2e-6 * std::abs(want[k].second) + 1e-12, "weight " + std::to_string(got[k].weight) + " for " + std::to_string(want[k].second));
      }
    }
}};

const Test ties{"experts: of equal scores the lower ids win", [] {
  cpu::RouterRule rule{.experts = 6, .used = 2};
  check(ids(choose(rule, {1, 1, 1, 1, 1, 1})) == std::vector<uint32_t>{0, 1});
  check(ids(choose(rule, {0, 2, 1, 2, 2, 1})) == std::vector<uint32_t>{1, 3});
  rule = {.experts = 6, .used = 2, .groups = 3, .usedGroups = 1};
  check(ids(choose(rule, {0, 0, 1, 1, 1, 1})) == std::vector<uint32_t>{2, 3}, "groups too");
}};

const Test hostileLogits{"experts: NaN and infinite logits have a defined choice", [] {
  for (const Gating gating : {Gating::Softmax, Gating::Sigmoid, Gating::RootSoftplus, Gating::SoftmaxOfSelected}) {
    cpu::RouterRule rule{.gating = gating, .experts = 5, .used = 2, .normalized = true};
    const auto all = choose(rule, {NaN, NaN, NaN, NaN, NaN});
    check(ids(all) == std::vector<uint32_t>{0, 1} && all[0].weight == 0 && all[1].weight == 0, "nothing but NaN");
    const auto one = choose(rule, {NaN, 1, NaN, 1, NaN});
    check(ids(one) == std::vector<uint32_t>{1, 3} && one[0].weight == 0.5f && one[1].weight == 0.5f, "NaN is the worst");
    const auto infinite = choose(rule, {-Infinity, Infinity, NaN, -Infinity, 0});
    check(ids(infinite) == std::vector<uint32_t>{1, 4}, "+∞ is the best");
    check(infinite[0].weight > 0 && std::isfinite(infinite[0].weight) && std::isfinite(infinite[1].weight), "finite weights");
    const std::vector<float> bias{NaN, 0, NaN, 0, NaN};
    rule.selectionBias = bias.data();
    check(ids(choose(rule, {9, 1, 9, 1, 9})) == std::vector<uint32_t>{1, 3}, "a NaN bias is the worst");
    rule.groups = 5, rule.usedGroups = 2;
    check(ids(choose(rule, {9, 1, 9, 1, 9})) == std::vector<uint32_t>{1, 3}, "in groups too");
  }
  const auto vanishing = choose({.experts = 4, .used = 1, .normalized = true}, {-1e30f, -2e30f, -3e30f, -4e30f});
  check(vanishing[0].expert == 0 && vanishing[0].weight == 1, "large negative logits");
  const auto tiny = choose({.gating = Gating::Sigmoid, .experts = 2, .used = 2, .normalized = true}, {-80, -80});
  check(tiny[0].weight < 1e-25f, "the sum of weights has a floor");
}};

const Test grouping{"experts: pairs are grouped by expert, then by row", [] {
  Random random(5);
  cpu::ExpertGroups groups;
  for (int i = 0; i < 100; ++i) {
    const uint32_t experts = 1 + random() % 30, used = 1 + random() % std::min(experts, 6u), rows = 1 + random() % 40;
    std::vector<ExpertChoice> choices;
    for (uint32_t row = 0; row < rows; ++row) {
      auto chosen = choose({.experts = experts, .used = used}, randomValues(experts, random));
      choices.insert(choices.end(), chosen.begin(), chosen.end());
    }
    groups.assign(choices, used, experts);
    check(groups.pairs() == choices.size());
    size_t at = 0;
    std::vector<size_t> seen(rows);
    for (const auto& group : groups.groups()) {
      check(group.begin == at && group.size() > 0 && group.expert < experts);
      for (at = group.begin; at < group.end; ++at) {
        const uint32_t row = groups.row(at);
        check(at == group.begin || groups.row(at - 1) < row, "rows rise");
        const auto* first = choices.data() + row * used;
        const auto* found = std::find_if(first, first + used, [&](const ExpertChoice& c) { return c.expert == group.expert; });
        check(found != first + used && found->weight == groups.weight(at), "the row chose this expert");
        ++seen[row];
      }
    }
    check(at == choices.size() && std::all_of(seen.begin(), seen.end(), [&](size_t n) { return n == used; }));
  }
}};

// Products

/// A stack of random matrices with everything that may come with it.
struct Stack {
  Type type;
  size_t experts, rows, length;
  std::vector<std::byte> bytes;
  std::vector<const std::byte*> begins;
  std::vector<float> bias, scale, values;

  Stack(Type type, size_t experts, size_t rows, size_t length, bool extras, Random& random) : type(type), experts(experts), rows(rows), length(length) {
    const size_t rowBytes = quant::rowBytes(quant::format(type), length);
    bytes.resize(experts * rows * rowBytes);
    values.resize(experts * rows * length);
    for (size_t r = 0; r < experts * rows; ++r) {
      std::byte* row = bytes.data() + r * rowBytes;
      if (quant::encodable(type)) quant::quantize(type, randomValues(length, random, 0.15f), row);
      else randomRow(row, rowBytes, random);
      quant::dequantize(type, row, {values.data() + r * length, length});
    }
    for (size_t e = 0; e < experts; ++e) begins.push_back(bytes.data() + e * rows * rowBytes);
    if (!extras) return;
    bias = randomValues(experts * rows, random, 0.3f);
    for (size_t e = 0; e < experts; ++e) scale.push_back(0.5f + 0.25f * float(e));
  }

  void randomRow(std::byte* row, size_t rowBytes, Random& random) const {
    for (size_t i = 0; i < rowBytes; ++i) row[i] = std::byte(random());
    const size_t block = quant::format(type).blockBytes;
    const uint16_t small = 0x1c00; // 2^-8
    for (size_t at = 0; at < rowBytes; at += block) {
      if (type == Type::MXFP4) row[at] = std::byte(123);
      else if (type == Type::NVFP4) std::fill_n(row + at, 4, std::byte(0x20 + random() % 16));
      else if (type == Type::IQ4_NL) std::memcpy(row + at, &small, 2), row[at + 1] = std::byte(0x10);
      else if (type == Type::Q2_K) std::memcpy(row + at + 80, &small, 2), std::memcpy(row + at + 82, &small, 2);
      else if (type == Type::Q3_K) std::memcpy(row + at + 108, &small, 2);
      else check(false, "no random rows of this type");
    }
  }

  cpu::ExpertMatrices matrices(size_t firstRow = 0, size_t count = 0) const {
    const size_t rowBytes = quant::rowBytes(quant::format(type), length);
    cpu::ExpertMatrices out{type, begins.data(), rowBytes, firstRow, count ? count : rows};
    if (!bias.empty()) out.bias = bias.data() + firstRow, out.biasStride = rows;
    if (!scale.empty()) out.scale = scale.data();
    return out;
  }

  /// Output `row` of expert e for operand x, in double.
  double product(size_t e, size_t row, const std::vector<double>& x) const {
    double sum = 0;
    for (size_t k = 0; k < length; ++k) sum += values[(e * rows + row) * length + k] * x[k];
    return sum * (scale.empty() ? 1 : scale[e]) + (bias.empty() ? 0 : bias[e * rows + row]);
  }
  /// What the kernels read of a row of values.
  std::vector<double> operand(const std::vector<double>& x) const {
    if (!cpu::usesInt8(type)) return x;
    std::vector<float> values(x.begin(), x.end()), scale(length / 32);
    std::vector<int8_t> q(length);
    std::vector<int16_t> sums(length / 16);
    cpu::kernels(cpu::Isa::Scalar).quantizeRow(values.data(), length, q.data(), scale.data(), sums.data());
    std::vector<double> out(length);
    for (size_t k = 0; k < length; ++k) out[k] = double(q[k]) * scale[k / 32];
    return out;
  }
};

double activate(Activation activation, double g, double u) {
  switch (activation) {
  case Activation::Silu: return g / (1 + std::exp(-g)) * u;
  case Activation::Gelu: return 0.5 * g * (1 + std::tanh(0.7978845608028654 * g * (1 + 0.044715 * g * g))) * u;
  case Activation::Swiglu: g = std::min(g, 7.0); return g / (1 + std::exp(-1.702 * g)) * (std::clamp(u, -7.0, 7.0) + 1);
  }
  return 0;
}

struct Shape {
  size_t experts, used, width, feedForward, shared; ///< shared: feed-forward length, 0 for none
};

/// A random layer with its reference.
struct Layer {
  Shape shape;
  Activation activation;
  bool fused; ///< gate and up lie in one stack, gate rows first
  Stack gate, up, down;
  std::vector<Stack> sharedStacks;
  cpu::ExpertLayer view;

  Layer(Shape shape, std::array<Type, 3> types, Activation activation, bool fused, bool extras, Random& random)
      : shape(shape), activation(activation), fused(fused), gate(types[0], shape.experts, shape.feedForward * (fused ? 2 : 1), shape.width, extras, random),
        up(types[1], shape.experts, shape.feedForward, shape.width, extras, random), down(types[2], shape.experts, shape.width, shape.feedForward, extras, random) {
    view.rule = {.gating = Gating::Softmax, .experts = uint32_t(shape.experts), .used = uint32_t(shape.used), .normalized = true};
    view.routed.gate = gate.matrices(0, shape.feedForward);
    view.routed.up = fused ? gate.matrices(shape.feedForward, shape.feedForward) : up.matrices();
    view.routed.down = down.matrices();
    view.routed.activation = activation;
    if (shape.shared == 0) return;
    sharedStacks.emplace_back(types[1], 1, shape.shared, shape.width, false, random);
    sharedStacks.emplace_back(types[2], 1, shape.shared, shape.width, false, random);
    sharedStacks.emplace_back(types[0], 1, shape.width, shape.shared, false, random);
    view.shared = {sharedStacks[0].matrices(), sharedStacks[1].matrices(), sharedStacks[2].matrices(), activation};
  }

  static std::vector<double> forward(const Stack& gate, const Stack& up, size_t firstUp, const Stack& down, size_t e, Activation activation, const std::vector<double>& x) {
    const std::vector<double> gateIn = gate.operand(x), upIn = up.operand(x);
    std::vector<double> hidden(down.length);
    for (size_t i = 0; i < hidden.size(); ++i) hidden[i] = activate(activation, gate.product(e, i, gateIn), up.product(e, firstUp + i, upIn));
    const std::vector<double> downIn = down.operand(hidden);
    std::vector<double> out(down.rows);
    for (size_t i = 0; i < out.size(); ++i) out[i] = down.product(e, i, downIn);
    return out;
  }

  std::vector<double> reference(const std::vector<float>& row, const std::vector<float>& logits, const float* sharedGate) const {
    const std::vector<double> x(row.begin(), row.end());
    std::vector<double> out(shape.width);
    for (const auto& [e, weight] : chooseByDefinition(view.rule, logits)) {
      const auto y = forward(gate, fused ? gate : up, fused ? shape.feedForward : 0, down, e, activation, x);
      for (size_t i = 0; i < out.size(); ++i) out[i] += weight * y[i];
    }
    if (shape.shared == 0) return out;
    const auto y = forward(sharedStacks[0], sharedStacks[1], 0, sharedStacks[2], 0, activation, x);
    const double weight = sharedGate ? 1 / (1 + std::exp(-double(*sharedGate))) : 1;
    for (size_t i = 0; i < out.size(); ++i) out[i] += weight * y[i];
    return out;
  }

  bool int8() const { return cpu::usesInt8(gate.type) || cpu::usesInt8(up.type) || cpu::usesInt8(down.type); }
};

struct Inputs {
  std::vector<float> x, logits, sharedGate;
};

std::vector<float> run(const Layer& layer, const Inputs& inputs, size_t first, size_t rows, cpu::Isa isa, unsigned threads, bool gated, float base = 0) {
  const Shape& shape = layer.shape;
  const cpu::Kernels& kernels = cpu::kernels(isa);
  cpu::ThreadPool pool(threads);
  auto runner = test::expect(cpu::ExpertRunner::create(
      {uint32_t(rows), uint32_t(shape.width), uint32_t(shape.experts), uint32_t(shape.used), uint32_t(shape.feedForward), uint32_t(shape.shared)}, kernels, pool));
  auto in = test::expect(cpu::Rows::create(uint32_t(rows), uint32_t(shape.width))), out = test::expect(cpu::Rows::create(uint32_t(rows), uint32_t(shape.width)));
  std::copy_n(inputs.x.begin() + ptrdiff_t(first * shape.width), rows * shape.width, in.write(shape.width));
  std::fill_n(out.write(shape.width), rows * shape.width, base == 0 ? NaN : base);
  std::vector<float> logits(inputs.logits.begin() + ptrdiff_t(first * shape.experts), inputs.logits.begin() + ptrdiff_t((first + rows) * shape.experts));
  runner.run(layer.view, uint32_t(rows), logits.data(), gated ? inputs.sharedGate.data() + first : nullptr, in, out, base != 0);
  return {out.data(), out.data() + rows * shape.width};
}

Inputs randomInputs(const Shape& shape, size_t rows, Random& random) {
  return {randomValues(rows * shape.width, random), randomValues(rows * shape.experts, random, 2), randomValues(rows, random)};
}

void compare(const Layer& layer, size_t rows, bool gated, const std::string& what, Random& random) {
  const Shape& shape = layer.shape;
  const Inputs inputs = randomInputs(shape, rows, random);
  std::vector<std::vector<double>> want;
  double largest = 0;
  for (size_t row = 0; row < rows; ++row) {
    const std::vector<float> x(inputs.x.begin() + ptrdiff_t(row * shape.width), inputs.x.begin() + ptrdiff_t((row + 1) * shape.width));
    const std::vector<float> logits(inputs.logits.begin() + ptrdiff_t(row * shape.experts), inputs.logits.begin() + ptrdiff_t((row + 1) * shape.experts));
    want.push_back(layer.reference(x, logits, gated ? &inputs.sharedGate[row] : nullptr));
    for (const double value : want.back()) largest = std::max(largest, std::abs(value));
  }
  // Where a hidden value lies between two 8-bit codes, float and double may round it to different ones.
  const double tolerance = layer.int8() ? 4e-3 : 5e-6;
  for (const cpu::Isa isa : test::availableTiers()) {
    const auto got = run(layer, inputs, 0, rows, isa, 2, gated);
    for (size_t row = 0; row < rows; ++row)
      for (size_t i = 0; i < shape.width; ++i) {
        const double error = std::abs(got[row * shape.width + i] - want[row][i]) / largest;
        check(error <= tolerance, what + " under " + cpu::isaName(isa) + ": error " + std::to_string(error));
      }
  }
}

Shape randomShape(Random& random, size_t unit) {
  Shape shape;
  shape.experts = 1 + random() % 9;
  shape.used = 1 + random() % std::min<size_t>(shape.experts, 4);
  shape.width = unit * (1 + random() % 3);
  shape.feedForward = unit * (1 + random() % 3);
  shape.shared = random() % 2 ? 0 : unit * (1 + random() % 3);
  return shape;
}

const Test products{"experts: products of every format equal a double reference, with biases, scales, fused stacks and shared experts", [] {
  Random random(7);
  for (const auto& types : {std::array{Type::F32, Type::F32, Type::F32}, {Type::Q8_0, Type::Q8_0, Type::Q8_0}, {Type::Q4_K, Type::Q4_K, Type::Q6_K},
                            {Type::MXFP4, Type::MXFP4, Type::MXFP4}, {Type::NVFP4, Type::NVFP4, Type::NVFP4}, {Type::IQ4_NL, Type::Q5_0, Type::F16},
                            {Type::BF16, Type::Q4_0, Type::Q5_1}, {Type::F16, Type::NVFP4, Type::IQ4_NL}, {Type::Q2_K, Type::Q2_K, Type::Q3_K}}) {
    const bool super = types[0] == Type::Q4_K || types[0] == Type::Q2_K;
    for (int i = 0; i < (super ? 4 : 10); ++i) {
      const Shape shape = randomShape(random, super ? 256 : 64);
      const auto activation = std::array{Activation::Silu, Activation::Gelu, Activation::Swiglu}[random() % 3];
      const bool fused = random() % 2, gated = random() % 2;
      const Layer layer(shape, types, activation, fused, random() % 2, random);
      compare(layer, 1 + random() % 12, gated, std::string(quant::format(types[0]).name) + "/" + quant::format(types[2]).name, random);
    }
  }
}};

const Test oddWidths{"experts: float products of widths that are no multiple of a block", [] {
  Random random(9);
  for (int i = 0; i < 12; ++i) {
    const Shape shape{5, 2, 1 + random() % 70, 1 + random() % 70, random() % 2 ? 1 + random() % 70 : 0};
    const Layer layer(shape, {Type::F32, Type::F16, Type::F32}, Activation::Silu, false, true, random);
    compare(layer, 1 + random() % 20, true, "widths " + std::to_string(shape.width) + " and " + std::to_string(shape.feedForward), random);
  }
}};

const Test independence{"experts: a row's result depends neither on the rows beside it nor on threads", [] {
  Random random(11);
  for (const cpu::Isa isa : test::availableTiers())
    for (const auto& types : {std::array{Type::F32, Type::F32, Type::F32}, {Type::Q4_0, Type::Q4_0, Type::Q8_0}, {Type::MXFP4, Type::MXFP4, Type::MXFP4}}) {
      const Layer layer({6, 2, 320, 96, 64}, types, Activation::Silu, false, true, random);
      constexpr size_t Rows = 40;
      const Inputs inputs = randomInputs(layer.shape, Rows, random);
      const auto all = run(layer, inputs, 0, Rows, isa, 1, true);
      check(test::sameBits(run(layer, inputs, 0, Rows, isa, 3, true), all), "threads change nothing");
      for (const size_t some : {1, 2, 3, 7, 8, 13})
        for (size_t first = 0; first + some <= Rows; first += some)
          check(test::sameBits(run(layer, inputs, first, some, isa, 2, true), std::span(all).subspan(first * 320, some * 320)),
                std::to_string(some) + " rows from " + std::to_string(first) + " under " + cpu::isaName(isa));
    }
}};

const Test adding{"experts: may be added to what is there", [] {
  Random random(13);
  const Layer layer({4, 2, 64, 32, 0}, {Type::F32, Type::F32, Type::F32}, Activation::Silu, false, false, random);
  const Inputs inputs = randomInputs(layer.shape, 9, random);
  const auto plain = run(layer, inputs, 0, 9, cpu::detectIsa(), 2, false), added = run(layer, inputs, 0, 9, cpu::detectIsa(), 2, false, 3);
  for (size_t i = 0; i < plain.size(); ++i) check(std::abs(added[i] - plain[i] - 3) < 1e-5);
}};

const Test nanRow{"experts: a row of NaN harms no other row", [] {
  Random random(17);
  const Layer layer({5, 2, 64, 64, 64}, {Type::Q8_0, Type::Q8_0, Type::Q8_0}, Activation::Silu, false, false, random);
  Inputs inputs = randomInputs(layer.shape, 6, random);
  const auto before = run(layer, inputs, 0, 6, cpu::detectIsa(), 2, false);
  std::fill_n(inputs.x.begin() + 64, 64, NaN);
  std::fill_n(inputs.logits.begin() + 5, 5, NaN);
  const auto after = run(layer, inputs, 0, 6, cpu::detectIsa(), 2, false);
  for (size_t row : {0, 2, 3, 4, 5})
    check(test::sameBits(std::span(after).subspan(row * 64, 64), std::span(before).subspan(row * 64, 64)), "row " + std::to_string(row));
}};

} // namespace
} // namespace mashbox
