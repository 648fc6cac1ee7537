#include "cpu/backend_delta_net.hpp"
#include "model_session.hpp"
#include "test.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace mashbox {
namespace {

using cpu::ChunkTokens;
using cpu::DeltaNetMixer;
using cpu::DeltaNetRows;
using cpu::DeltaNetStates;
using model::DeltaNet;
using model::HeadMap;
using test::check;
using test::Test;

using Random = std::mt19937;

constexpr double MostError = 1e-6;

std::vector<float> randomValues(size_t n, Random& random, float deviation = 1, float mean = 0) {
  std::normal_distribution<float> normal(mean, deviation);
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

/// A random layer and the projections of one sequence's tokens. `interleaved`: every key head's q, k, its value heads' v and their z
/// stand together, and so do its betas and alphas.
struct Layer {
  DeltaNet shape;
  bool interleaved;
  size_t tokens;
  std::vector<float> taps, timeBias, decay, norm;
  std::vector<float> mixed, gate, beta, alpha;
  float epsilon = 1e-6f;

  Layer(const DeltaNet& shape, bool interleaved, size_t tokens, Random& random) : shape(shape), interleaved(interleaved), tokens(tokens) {
    const size_t heads = shape.valueHeads;
    taps = randomValues(shape.convolution * shape.convolutionWidth(), random, 0.5f);
    timeBias = randomValues(heads, random, 1);
    // Heads that forget at once and heads that keep hundreds of tokens.
    for (size_t h = 0; h < heads; ++h) decay.push_back(-std::pow(10.0f, std::uniform_real_distribution<float>(-3, 2)(random)));
    norm = randomValues(shape.valueLength, random, 0.3f, 1);
    mixed = randomValues(tokens * mixedWidth(), random);
    gate = randomValues(tokens * heads * shape.valueLength, random);
    beta = randomValues(tokens * 2 * heads, random, 2);
    alpha = randomValues(tokens * heads, random, 2);
  }

  size_t perKeyHead() const { return shape.valueHeads / shape.keyHeads; }
  size_t mixedWidth() const { return shape.convolutionWidth() + (interleaved ? shape.valueHeads * shape.valueLength : 0); }

  DeltaNetRows rows(size_t from, float* out) const {
    const size_t dk = shape.keyLength, dv = shape.valueLength, hv = shape.valueHeads, r = perKeyHead();
    const auto group = static_cast<uint32_t>(r);
    const float* m = mixed.data() + from * mixedWidth();
    DeltaNetRows rows{};
    if (interleaved) {
      const size_t width = mixedWidth(), stride = 2 * dk + 2 * r * dv;
      rows.query = {m, width, 1, stride, 0};
      rows.key = {m + dk, width, 1, stride, 0};
      rows.value = {m + 2 * dk, width, group, stride, dv};
      rows.gate = {m + 2 * dk + r * dv, width, group, stride, dv};
      rows.beta = {beta.data() + from * 2 * hv, 2 * hv, group, 2 * r, 1};
      rows.alpha = {beta.data() + from * 2 * hv + r, 2 * hv, group, 2 * r, 1};
    } else {
      const size_t width = mixedWidth();
      rows.query = {m, width, 1, dk, 0};
      rows.key = {m + shape.keyHeads * dk, width, 1, dk, 0};
      rows.value = {m + 2 * shape.keyHeads * dk, width, 1, dv, 0};
      rows.gate = {gate.data() + from * hv * dv, hv * dv, 1, dv, 0};
      rows.beta = {beta.data() + from * hv, hv, 1, 1, 0};
      rows.alpha = {alpha.data() + from * hv, hv, 1, 1, 0};
    }
    rows.taps = taps.data();
    rows.timeBias = timeBias.data();
    rows.decay = decay.data();
    rows.norm = norm.data();
    rows.epsilon = epsilon;
    rows.out = out;
    return rows;
  }

  size_t keyHeadOf(size_t valueHead) const { return shape.headMap == HeadMap::Tiled ? valueHead % shape.keyHeads : valueHead / perKeyHead(); }
};

/// tokens × valueHeads · valueLength outputs by the recurrence, token by token, in float64.
std::vector<double> recurrence(const Layer& layer) {
  const DeltaNet& d = layer.shape;
  const size_t dk = d.keyLength, dv = d.valueLength, hk = d.keyHeads, hv = d.valueHeads;
  const DeltaNetRows in = layer.rows(0, nullptr);
  const auto convolved = [&](const cpu::DeltaNetInput& input, size_t t, uint32_t head, size_t channel, size_t i) {
    double sum = 0;
    for (size_t j = 0; j < d.convolution; ++j)
      if (t + j + 1 >= d.convolution) sum += static_cast<double>(layer.taps[j * d.convolutionWidth() + channel + i]) * input.at(t + j + 1 - d.convolution, head)[i];
    return sum / (1 + std::exp(-sum));
  };
  const auto unit = [&](std::vector<double> x) {
    const double squares = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
    for (double& value : x) value /= std::sqrt(squares + static_cast<double>(layer.epsilon));
    return x;
  };
  std::vector<double> out;
  std::vector<double> state(hv * dk * dv);
  for (size_t t = 0; t < layer.tokens; ++t) {
    for (uint32_t head = 0; head < hv; ++head) {
      const auto kh = static_cast<uint32_t>(layer.keyHeadOf(head));
      std::vector<double> q(dk), k(dk), u(dv), o(dv);
      for (size_t i = 0; i < dk; ++i) q[i] = convolved(in.query, t, kh, kh * dk, i), k[i] = convolved(in.key, t, kh, (hk + kh) * dk, i);
      q = unit(q), k = unit(k);
      const double beta = 1 / (1 + std::exp(-static_cast<double>(*in.beta.at(t, head))));
      const double g = std::log1p(std::exp(static_cast<double>(*in.alpha.at(t, head)) + layer.timeBias[head])) * layer.decay[head];
      double* const s = state.data() + head * dk * dv;
      for (size_t i = 0; i < dk * dv; ++i) s[i] *= std::exp(g);
      for (size_t i = 0; i < dk; ++i)
        for (size_t j = 0; j < dv; ++j) u[j] += s[i * dv + j] * k[i];
      for (size_t j = 0; j < dv; ++j) u[j] = beta * (convolved(in.value, t, head, 2 * hk * dk + head * dv, j) - u[j]);
      for (size_t i = 0; i < dk; ++i)
        for (size_t j = 0; j < dv; ++j) o[j] += (s[i * dv + j] += k[i] * u[j]) * q[i] / std::sqrt(static_cast<double>(dk));
      const double mean = std::inner_product(o.begin(), o.end(), o.begin(), 0.0) / static_cast<double>(dv);
      for (size_t j = 0; j < dv; ++j) {
        const double z = in.gate.at(t, head)[j];
        out.push_back(o[j] / std::sqrt(mean + static_cast<double>(layer.epsilon)) * layer.norm[j] * z / (1 + std::exp(-z)));
      }
    }
  }
  return out;
}

struct Mixer {
  cpu::ThreadPool pool;
  DeltaNetMixer mixer;

  Mixer(const DeltaNet& shape, cpu::Isa isa, uint32_t states, uint32_t batchRows, unsigned threads = 2)
      : pool(threads),
        mixer(test::expect(DeltaNetMixer::create(test::expect(DeltaNetStates::create({shape}, states)), batchRows, cpu::kernels(isa), pool))) {}

  /// Tokens [from, to) of the layer's sequence.
  void run(const Layer& layer, kv::StateId state, size_t from, size_t to, float* out) {
    const model::RowRange range{0, static_cast<uint32_t>(to - from), static_cast<uint32_t>(from), {}, state};
    mixer.begin({&range, 1});
    mixer.run(layer.rows(from, out + from * layer.shape.valueHeads * layer.shape.valueLength));
  }
};

/// The whole sequence in cuts of these sizes, over and over.
std::vector<float> inCuts(Mixer& mixer, const Layer& layer, std::vector<size_t> cuts, kv::StateId state = kv::StateId{0}) {
  std::vector<float> out(layer.tokens * layer.shape.valueHeads * layer.shape.valueLength);
  for (size_t at = 0, i = 0; at < layer.tokens; ++i) {
    const size_t end = std::min(layer.tokens, at + cuts[i % cuts.size()]);
    mixer.run(layer, state, at, end, out.data());
    at = end;
  }
  return out;
}

/// The root mean square of the differences over that of the values. (A single row can be badly conditioned: where what a head sees
/// almost cancels, the norm behind it enlarges the rounding of float32.)
double relativeError(std::span<const float> got, std::span<const double> want) {
  double squares = 0, differences = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    check(std::isfinite(got[i]), "finite");
    differences += (got[i] - want[i]) * (got[i] - want[i]);
    squares += want[i] * want[i];
  }
  return std::sqrt(differences / squares);
}

std::string named(const DeltaNet& d, cpu::Isa isa) {
  return std::to_string(d.keyHeads) + ":" + std::to_string(d.valueHeads) + " heads of " + std::to_string(d.keyLength) + " × " + std::to_string(d.valueLength) +
         " under " + cpu::isaName(isa);
}

DeltaNet randomShape(Random& random) {
  const auto pick = [&](auto... values) {
    const uint32_t all[] = {static_cast<uint32_t>(values)...};
    return all[random() % std::size(all)];
  };
  DeltaNet d;
  d.keyHeads = pick(1, 2, 3);
  d.valueHeads = d.keyHeads * pick(1, 2, 3);
  d.keyLength = pick(16, 32, 48, 80, 128);
  d.valueLength = pick(16, 32, 48, 112, 128);
  d.convolution = pick(2, 3, 4, 5);
  d.headMap = random() % 2 ? HeadMap::Tiled : HeadMap::Grouped;
  return d;
}

const Test againstRecurrence{"delta net: random shapes equal the recurrence in float64, however they are cut", [] {
  Random random(7);
  const int shapes = test::Sanitized ? 4 : 12;
  for (int i = 0; i < shapes; ++i) {
    const DeltaNet shape = randomShape(random);
    const bool interleaved = shape.headMap == HeadMap::Grouped && i % 2 == 0;
    const Layer layer(shape, interleaved, 1 + random() % 200, random);
    const auto want = recurrence(layer);
    for (const cpu::Isa isa : test::availableTiers()) {
      Mixer mixer(shape, isa, 1, 256);
      const auto whole = inCuts(mixer, layer, {256});
      const double error = relativeError(whole, want);
      check(error < MostError, named(shape, isa) + ": error in millionths " + std::to_string(error * 1e6));
      for (const std::vector<size_t>& cuts : {std::vector<size_t>{1}, {7}, {64}, {63, 2}, {40, 1, 100, 3}})
        check(test::sameBits(inCuts(mixer, layer, cuts), whole), named(shape, isa) + " in cuts of " + std::to_string(cuts[0]));
      Mixer alone(shape, isa, 1, 256, 1);
      check(test::sameBits(inCuts(alone, layer, {256}), whole), named(shape, isa) + " on one thread");
    }
  }
}};

const Test longMemory{"delta net: the error does not grow over 2000 tokens", [] {
  Random random(11);
  DeltaNet shape{.keyHeads = 1, .valueHeads = 2, .keyLength = 32, .valueLength = 32};
  Layer layer(shape, false, test::Sanitized ? 300 : 2000, random);
  layer.decay = {-1e-4f, -30};
  const auto want = recurrence(layer);
  for (const cpu::Isa isa : test::availableTiers()) {
    Mixer mixer(shape, isa, 1, 512);
    const double error = relativeError(inCuts(mixer, layer, {512}), want);
    check(error < MostError, named(shape, isa) + ": error in millionths " + std::to_string(error * 1e6));
  }
}};

const Test ragged{"delta net: sequences of ragged lengths in one batch equal each alone", test::threaded, [] {
  Random random(3);
  const DeltaNet shape{.keyHeads = 2, .valueHeads = 4, .keyLength = 32, .valueLength = 48};
  const size_t width = size_t{shape.valueHeads} * shape.valueLength;
  for (const cpu::Isa isa : test::availableTiers()) {
    std::vector<Layer> layers;
    for (const size_t tokens : {1, 130, 64, 7, 200}) layers.emplace_back(shape, false, tokens, random);
    // One layer's weights for all of them.
    for (Layer& layer : layers) layer.taps = layers[0].taps, layer.timeBias = layers[0].timeBias, layer.decay = layers[0].decay, layer.norm = layers[0].norm;
    Mixer mixer(shape, isa, 5, 512);
    std::vector<std::vector<float>> alone;
    for (const Layer& layer : layers) alone.push_back(inCuts(mixer, layer, {33}));

    // Each runs a part first, the rest of all of them stands in one batch.
    Layer batch(shape, false, 0, random);
    batch.taps = layers[0].taps, batch.timeBias = layers[0].timeBias, batch.decay = layers[0].decay, batch.norm = layers[0].norm;
    std::vector<model::RowRange> ranges;
    std::vector<float> scratch(512 * width), want;
    for (uint32_t i = 0; i < layers.size(); ++i) {
      const Layer& layer = layers[i];
      const size_t before = i * 30 % layer.tokens;
      if (before > 0) mixer.run(layer, kv::StateId{i}, 0, before, scratch.data());
      const auto append = [before, &layer](std::vector<float>& to, const std::vector<float>& from) {
        to.insert(to.end(), from.begin() + static_cast<ptrdiff_t>(before * (from.size() / layer.tokens)), from.end());
      };
      ranges.push_back({static_cast<uint32_t>(batch.tokens), static_cast<uint32_t>(layer.tokens - before), static_cast<uint32_t>(before), {}, kv::StateId{i}});
      append(batch.mixed, layer.mixed), append(batch.gate, layer.gate), append(batch.alpha, layer.alpha), append(want, alone[i]);
      batch.beta.resize(batch.tokens * shape.valueHeads);
      batch.beta.insert(batch.beta.end(), layer.beta.begin() + static_cast<ptrdiff_t>(before * shape.valueHeads), layer.beta.begin() + static_cast<ptrdiff_t>(layer.tokens * shape.valueHeads));
      batch.tokens += layer.tokens - before;
    }
    std::vector<float> out(batch.tokens * width);
    mixer.mixer.begin(ranges);
    mixer.mixer.run(batch.rows(0, out.data()));
    check(test::sameBits(out, want), named(shape, isa));
  }
}};

const Test reuse{"delta net: a state that another sequence left behind changes nothing", [] {
  Random random(5);
  const DeltaNet shape{.keyHeads = 2, .valueHeads = 2, .keyLength = 16, .valueLength = 16};
  const Layer layer(shape, false, 150, random);
  Layer other(shape, false, 190, random);
  std::fill(other.mixed.begin(), other.mixed.end(), std::numeric_limits<float>::quiet_NaN());
  for (const cpu::Isa isa : test::availableTiers()) {
    Mixer mixer(shape, isa, 1, 256);
    const auto fresh = inCuts(mixer, layer, {256});
    inCuts(mixer, other, {256});
    for (const size_t cut : {256, 1, 50}) check(test::sameBits(inCuts(mixer, layer, {cut}), fresh), cpu::isaName(isa));
  }
}};

const Test copies{"delta net: a copy, and saved and loaded bytes, go on as the original", [] {
  Random random(9);
  const DeltaNet shape{.keyHeads = 2, .valueHeads = 4, .keyLength = 32, .valueLength = 16};
  const Layer layer(shape, false, 200, random);
  const size_t width = size_t{shape.valueHeads} * shape.valueLength;
  const cpu::Isa isa = cpu::detectIsa();
  Mixer mixer(shape, isa, 3, 256);
  const auto whole = inCuts(mixer, layer, {256});
  for (const size_t at : {1, 3, 40, 64, 100, 128, 191}) {
    std::vector<float> out(whole.size());
    mixer.run(layer, kv::StateId{0}, 0, at, out.data());
    const auto length = static_cast<uint32_t>(at);
    mixer.mixer.states().copy(kv::StateId{0}, kv::StateId{1}, length);
    const auto bytes = mixer.mixer.states().save(kv::StateId{0}, length);
    check(test::expect(mixer.mixer.states().load(bytes, kv::StateId{2})) == length);
    for (const uint32_t state : {1, 2}) {
      mixer.run(layer, kv::StateId{state}, at, layer.tokens, out.data());
      check(test::sameBits(out, whole), "behind " + std::to_string(at));
      std::fill(out.begin() + static_cast<ptrdiff_t>(at * width), out.end(), 0.0f);
    }
  }
}};

const Test rollback{"delta net: up to eight tokens of the last chunk can be taken back", [] {
  Random random(13);
  const DeltaNet shape{.keyHeads = 1, .valueHeads = 2, .keyLength = 32, .valueLength = 32};
  const Layer layer(shape, false, 120, random);
  Layer draft(shape, false, 120, random);
  draft.taps = layer.taps, draft.timeBias = layer.timeBias, draft.decay = layer.decay, draft.norm = layer.norm;
  Mixer mixer(shape, cpu::detectIsa(), 1, 256);
  const auto whole = inCuts(mixer, layer, {256});
  std::vector<float> out(whole.size()), dropped(whole.size());
  size_t at = 0;
  for (const size_t next : {20, 55, 63, 70, 119}) {
    mixer.run(layer, kv::StateId{0}, at, next, out.data());
    at = next;
    const size_t most = std::min<size_t>(cpu::RollbackTokens, ChunkTokens - 1 - at % ChunkTokens);
    if (most > 0) mixer.run(draft, kv::StateId{0}, at, std::min(draft.tokens, at + most), dropped.data());
  }
  mixer.run(layer, kv::StateId{0}, at, layer.tokens, out.data());
  check(test::sameBits(out, whole));
}};

const Test damaged{"delta net: damaged or foreign bytes of a state are refused by name", [] {
  Random random(1);
  const DeltaNet shape{.keyHeads = 1, .valueHeads = 1, .keyLength = 16, .valueLength = 16};
  auto states = test::expect(DeltaNetStates::create({shape, shape}, 2));
  DeltaNet wider = shape;
  wider.valueLength = 32;
  auto others = test::expect(DeltaNetStates::create({wider, wider}, 1));
  const auto good = states.save(kv::StateId{0}, 70);
  check(test::expect(states.load(good, kv::StateId{1})) == 70);
  const auto refused = [](const Result<uint32_t>& result, ErrorKind kind, const std::string& what) {
    check(!result && result.error().kind == kind && result.error().subject == "state", what);
  };
  refused(others.load(good, kv::StateId{0}), ErrorKind::Inconsistent, "another shape");
  for (const size_t size : {size_t{0}, size_t{7}, size_t{31}, good.size() - 4}) refused(states.load(std::span(good).first(size), kv::StateId{1}), ErrorKind::Invalid, "truncated");
  auto longer = good;
  longer.resize(good.size() + 4);
  refused(states.load(longer, kv::StateId{1}), ErrorKind::Invalid, "longer");
  for (size_t i = 0; i < good.size(); i += i < 48 ? 1 : 97) {
    auto bad = good;
    bad[i] ^= std::byte{0x10};
    check(!states.load(bad, kv::StateId{1}), "byte " + std::to_string(i));
  }
}};

} // namespace
} // namespace mashbox
