#include "dequantized_model.hpp"
#include "json.hpp"
#include "model_session.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace mashbox {
namespace {

using model::KvType;
using test::check;
using test::expect;
using test::Json;
using test::Test;

std::unique_ptr<model::Context> contextOf(std::shared_ptr<const model::Model> loaded, uint32_t slots, uint32_t snapshots, KvType kvType = KvType::F32) {
  return expect(model::Context::create(std::move(loaded), {slots, 512, kvType, 256, snapshots}));
}

/// Appends tokens and returns the logits of each.
std::vector<float> run(model::Context& context, kv::Sequence& sequence, std::span<const int32_t> tokens, size_t chunk = 256) {
  std::vector<float> all;
  for (size_t at = 0; at < tokens.size(); at += chunk) {
    const model::Segment segment{&sequence, tokens.subspan(at, std::min(chunk, tokens.size() - at)), model::Logits::All};
    const auto rows = expect(context.forward({&segment, 1}));
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

std::vector<int32_t> someTokens(size_t count, uint32_t seed) {
  std::vector<int32_t> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<int32_t>((seed * 7919 + i * i * 31 + i * 17) % 500);
  return out;
}

/// Reads the parts of a saved state one after the other.
class StateReader {
public:
  explicit StateReader(std::span<const std::byte> bytes) : rest_(bytes.subspan(HeaderBytes)) {}
  template <class T> std::vector<T> take(size_t count) {
    check(rest_.size() >= count * sizeof(T), "the state is long enough");
    std::vector<T> out(count);
    std::ranges::copy(rest_.first(count * sizeof(T)), std::as_writable_bytes(std::span(out)).begin());
    rest_ = rest_.subspan(count * sizeof(T));
    return out;
  }
  bool atEnd() const { return rest_.empty(); }

private:
  static constexpr size_t HeaderBytes = 32;
  std::span<const std::byte> rest_;
};

/// One layer as the golden files have it: the last three inputs of the convolution, oldest first, then S with the tokens of the
/// unfinished chunk folded in.
std::vector<float> foldedLayer(StateReader& reader, const model::DeltaNet& d, uint32_t length) {
  const size_t width = d.convolutionWidth(), dk = d.keyLength, dv = d.valueLength, tail = length % kv::StateChunk;
  const uint32_t recent = std::min(length, d.convolution - 1 + kv::StateRollback);
  const auto sums = length >= kv::StateChunk ? reader.take<float>(d.valueHeads * dk * dv) : std::vector<float>(d.valueHeads * dk * dv);
  const auto inputs = reader.take<float>(recent * width);
  const auto keys = reader.take<float>(d.keyHeads * dk * tail), values = reader.take<float>(d.valueHeads * tail * dv);
  const auto decays = reader.take<double>(d.valueHeads * tail);
  std::vector<float> out;
  for (size_t back = d.convolution - 1; back > 0; --back) out.insert(out.end(), inputs.begin() + static_cast<ptrdiff_t>((back - 1) * width), inputs.begin() + static_cast<ptrdiff_t>(back * width));
  for (size_t head = 0; head < d.valueHeads; ++head) {
    const size_t keyHead = d.headMap == model::HeadMap::Tiled ? head % d.keyHeads : head / (d.valueHeads / d.keyHeads);
    const double* const decay = decays.data() + head * tail;
    for (size_t i = 0; i < dk; ++i)
      for (size_t j = 0; j < dv; ++j) {
        double sum = static_cast<double>(sums[(head * dk + i) * dv + j]) * (tail ? std::exp(decay[tail - 1]) : 1);
        for (size_t t = 0; t < tail; ++t)
          sum += std::exp(decay[tail - 1] - decay[t]) * static_cast<double>(keys[(keyHead * dk + i) * tail + t]) * values[(head * tail + t) * dv + j];
        out.push_back(static_cast<float>(sum));
      }
  }
  return out;
}

void checkStates(const std::string& name) {
  const auto folder = test::golden(name + "/golden.json");
  const Json golden = Json::load(folder);
  const Json& state = golden["state"];
  const auto tokens = golden["cases"][static_cast<size_t>(state["case"].integer())]["tokens"].ints();
  const std::pair<uint32_t, std::string> files[] = {{64, state["file_at_64_tokens"].string()}, {static_cast<uint32_t>(tokens.size()), state["file"].string()}};
  const auto path = test::golden(name + "/" + golden["model"]["file"].string());
  for (const auto& [length, file] : files) {
    const auto want = test::readFloats(test::golden(name + "/" + file));
    for (const cpu::Isa isa : test::availableTiers()) {
      const auto loaded = test::loadModel(path, isa);
      const auto context = contextOf(loaded, 1, 1);
      for (const size_t chunk : {1, 7, 256}) {
        kv::Sequence sequence(context->pool());
        run(*context, sequence, std::span(tokens).first(length), chunk);
        const auto bytes = context->saveState(expect(sequence.snapshot()));
        StateReader reader(bytes);
        size_t at = 0;
        for (const model::LayerConfig& layer : loaded->config().layers) {
          if (!layer.deltaNet) continue;
          const auto got = foldedLayer(reader, *layer.deltaNet, length);
          check(at + got.size() <= want.size(), "as many floats as the file");
          const size_t inputs = (layer.deltaNet->convolution - 1) * size_t{layer.deltaNet->convolutionWidth()};
          const auto stored = std::span(want).subspan(at, got.size());
          const double inputError = test::distance(std::span(got).first(inputs), stored.first(inputs), inputs).worst;
          const double stateError = test::distance(std::span(got).subspan(inputs), stored.subspan(inputs), got.size() - inputs).worst;
          check(inputError < 2e-5 && stateError < 2e-5, name + "/" + file + " under " + cpu::isaName(isa) + " in chunks of " + std::to_string(chunk));
          at += got.size();
        }
        check(at == want.size() && reader.atEnd(), "the whole file was compared");
      }
    }
  }
}

const Test qwen35States{"hybrid: the states of qwen35 equal the reference's", [] { checkStates("qwen35"); }};
const Test qwen35moeStates{"hybrid: the states of qwen35moe equal the reference's", [] { checkStates("qwen35moe"); }};
const Test qwen3nextStates{"hybrid: the states of qwen3next equal the reference's", [] { checkStates("qwen3next"); }};

/// Going back and on again gives the bits of a run that never went astray.
void checkRestores(const std::string& path, KvType kvType) {
  const auto loaded = test::loadModel(test::golden(path), cpu::detectIsa());
  const size_t width = loaded->config().vocabulary;
  const auto context = contextOf(loaded, 3, 4, kvType);
  const auto tokens = someTokens(200, 1), astray = someTokens(90, 2);
  kv::Sequence cold(context->pool());
  const auto whole = run(*context, cold, tokens);
  const auto from = [&](size_t length) { return std::span(whole).subspan(length * width); };
  const auto rest = [&](kv::Sequence& sequence) { return run(*context, sequence, std::span(tokens).subspan(sequence.length()), 33); };

  for (const uint32_t length : {1u, 3u, 30u, 63u, 64u, 100u, 128u, 199u}) {
    const std::string at = path + " behind " + std::to_string(length);
    kv::Sequence sequence(context->pool());
    run(*context, sequence, std::span(tokens).first(length), 50);
    const auto snapshot = expect(sequence.snapshot());
    run(*context, sequence, astray);
    expect(sequence.restore(snapshot));
    check(sequence.length() == length && test::sameBits(rest(sequence), from(length)), at + ": restored");

    const auto bytes = context->saveState(snapshot);
    const auto loadedState = expect(context->loadState(bytes));
    expect(sequence.restore(loadedState));
    check(test::sameBits(rest(sequence), from(length)), at + ": saved and loaded");
  }
  check(context->pool().states()->freeSnapshots() == 4 && context->pool().states()->freeStates() == 6);
}

const Test restores{"hybrid: a restored, saved or loaded snapshot goes on as a cold run", [] {
  checkRestores("qwen35/model-q8_0.gguf", KvType::F16);
  checkRestores("qwen3next/model-q4_0.gguf", KvType::F32);
}};
const Test exactRestores{"hybrid: so does one of a model in F32", [] { checkRestores("qwen35/model-f32.gguf", KvType::F32); }};

const Test truncates{"hybrid: truncate goes back in place or to a snapshot, and the rest equals a cold run", [] {
  const auto loaded = test::loadModel(test::golden("qwen35/model-q8_0.gguf"), cpu::detectIsa());
  const size_t width = loaded->config().vocabulary;
  const auto context = contextOf(loaded, 2, 2);
  const auto tokens = someTokens(200, 3), astray = someTokens(60, 4);
  kv::Sequence cold(context->pool());
  const auto whole = run(*context, cold, tokens);
  const auto rest = [&](kv::Sequence& sequence) {
    const auto from = sequence.length();
    check(test::sameBits(run(*context, sequence, std::span(tokens).subspan(from), 41), std::span(whole).subspan(from * width)), "from " + std::to_string(from));
  };
  kv::Sequence sequence(context->pool());
  run(*context, sequence, std::span(tokens).first(70));
  run(*context, sequence, std::span(astray).first(8), 3);
  check(sequence.truncate(70) == 70);
  expect(sequence.remember());
  run(*context, sequence, std::span(tokens).subspan(70, 40));
  expect(sequence.remember());
  run(*context, sequence, astray);
  check(sequence.truncate(120) == 110);
  rest(sequence);
  check(sequence.truncate(105) == 70);
  rest(sequence);
  check(sequence.truncate(69) == 0);
  rest(sequence);
}};

const Test forks{"hybrid: a fork at a snapshot shares blocks and goes on as a cold run", [] {
  const auto loaded = test::loadModel(test::golden("qwen35/model-q8_0.gguf"), cpu::detectIsa());
  const size_t width = loaded->config().vocabulary;
  const auto context = contextOf(loaded, 3, 2);
  const auto tokens = someTokens(160, 5), other = someTokens(40, 6);
  kv::Sequence source(context->pool());
  const auto whole = run(*context, source, std::span(tokens).first(96));
  expect(source.remember());
  const auto end = run(*context, source, std::span(tokens).subspan(96));
  kv::Sequence first = source.fork(159), second = source.fork(100);
  check(first.length() == 96 && second.length() == 96 && context->pool().shared(first.blocks()[0]));
  run(*context, second, other);
  check(test::sameBits(run(*context, first, std::span(tokens).subspan(96), 9), end), "the fork");
  check(source.truncate(96) == 96 && test::sameBits(run(*context, source, std::span(tokens).subspan(96)), end), "its source");
  check(whole.size() == 96 * width);
}};

const Test ragged{"hybrid: prompts and single tokens of several sequences in one batch equal each alone", [] {
  for (const std::string path : {"qwen35/model-q8_0.gguf", "qwen35moe/model-q4_0.gguf", "qwen3next/model-q4_0.gguf"}) {
    const auto loaded = test::loadModel(test::golden(path), cpu::detectIsa());
    const auto context = contextOf(loaded, 4, 0);
    const std::vector<size_t> before = {0, 63, 100, 128}, now = {90, 1, 1, 70};
    std::vector<std::vector<int32_t>> tokens;
    std::vector<float> want;
    for (uint32_t i = 0; i < 4; ++i) {
      tokens.push_back(someTokens(before[i] + now[i], 10 + i));
      kv::Sequence sequence(context->pool());
      run(*context, sequence, std::span(tokens[i]).first(before[i]));
      const auto rows = run(*context, sequence, std::span(tokens[i]).subspan(before[i]));
      want.insert(want.end(), rows.begin(), rows.end());
    }
    std::vector<kv::Sequence> sequences;
    std::vector<model::Segment> segments;
    for (uint32_t i = 0; i < 4; ++i) run(*context, sequences.emplace_back(context->pool()), std::span(tokens[i]).first(before[i]), 17);
    for (uint32_t i = 0; i < 4; ++i) segments.push_back({&sequences[i], std::span(tokens[i]).subspan(before[i]), model::Logits::All});
    check(test::sameBits(expect(context->forward(segments)), want), path);
  }
}};

/// qwen3next with its projections in one tensor, as older files have them: per key head q, k, and its value heads' v and z.
const Test joint{"hybrid: qwen3next with ssm_in in place of attn_qkv and attn_gate gives the same logits", [] {
  const auto path = test::golden("qwen3next/model-f32.gguf");
  const auto plain = test::loadModel(path, cpu::detectIsa());
  const model::DeltaNet d = *plain->config().layers[0].deltaNet;
  const size_t dk = d.keyLength, group = d.valueHeads / d.keyHeads * d.valueLength, keys = d.keyHeads * dk;
  const auto file = expect(gguf::File::open(path.string()));
  test::GgufWriter writer;
  test::copyKeys(writer, file);
  for (const gguf::Tensor& tensor : file.tensors()) {
    const std::string name(tensor.name);
    const auto values = test::floatsOf(tensor);
    if (name.ends_with(".attn_gate.weight")) continue;
    if (!name.ends_with(".attn_qkv.weight")) {
      test::writeFloats(writer, name, {tensor.dims.begin(), tensor.dims.begin() + tensor.rank}, values);
      continue;
    }
    const std::string block = name.substr(0, name.size() - std::string("attn_qkv.weight").size());
    const auto gates = test::floatsOf(*file.tensor(block + "attn_gate.weight"));
    std::vector<float> all;
    const auto append = [&](const std::vector<float>& from, size_t row, size_t rows) {
      all.insert(all.end(), from.begin() + static_cast<ptrdiff_t>(row * tensor.dims[0]), from.begin() + static_cast<ptrdiff_t>((row + rows) * tensor.dims[0]));
    };
    for (size_t head = 0; head < d.keyHeads; ++head) {
      append(values, head * dk, dk);
      append(values, keys + head * dk, dk);
      append(values, 2 * keys + head * group, group);
      append(gates, head * group, group);
    }
    test::writeFloats(writer, block + "ssm_in.weight", {tensor.dims[0], all.size() / tensor.dims[0]}, all);
  }
  const test::TemporaryFile older(writer.bytes());
  const auto tokens = someTokens(100, 8);
  for (const cpu::Isa isa : test::availableTiers()) {
    const auto want = test::createContext(test::loadModel(path, isa), KvType::F32), got = test::createContext(test::loadModel(older.path(), isa), KvType::F32);
    check(test::sameBits(test::allLogits(*got, tokens, 256), test::allLogits(*want, tokens, 256)), cpu::isaName(isa));
  }
}};

const Test prediction{"hybrid: blocks for multi-token prediction are counted and kept aside", [] {
  const auto loaded = test::loadModel(test::golden("qwen35-mtp/model-q8_0.gguf"), cpu::detectIsa());
  check(loaded->config().layers.size() == 4 && loaded->config().predictionBlocks == 1 && loaded->config().recurrent());
}};

const Test memory{"hybrid: the memory plan counts a state per slot and the snapshots", [] {
  const auto loaded = test::loadModel(test::golden("qwen35/model-q8_0.gguf"), cpu::detectIsa());
  const auto plan = [&](uint32_t slots, uint32_t snapshots) { return loaded->plan({slots, 64, KvType::F16, 64, snapshots}); };
  const uint64_t one = plan(1, 0).states;
  // Six layers of S, the kept inputs and the open chunk's keys and values at the least.
  check(one >= 6 * sizeof(float) * (4 * 16 * 16 + 11 * 128 + 64 * (2 * 16 + 4 * 16)));
  check(plan(3, 0).states == 3 * one && plan(3, 5).states == 8 * one && plan(1, 7).kvCache == plan(1, 0).kvCache);
  const auto dense = test::loadModel(test::golden("llama/model-f32.gguf"), cpu::detectIsa());
  check(dense->plan({4, 64, KvType::F16, 64, 9}).states == 0);
  const auto context = contextOf(dense, 1, 9);
  check(!context->pool().states() && context->loadState({}).error().kind == ErrorKind::Rejected);
}};

} // namespace
} // namespace mashbox
