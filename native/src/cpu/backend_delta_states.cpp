#include "cpu/backend_delta_states.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace mashbox::cpu {
namespace {

using model::DeltaNet;

uint64_t sumFloats(const DeltaNet& d) { return uint64_t{d.valueHeads} * d.keyLength * d.valueLength; }
uint64_t inputFloats(const DeltaNet& d) { return uint64_t{DeltaNetStates::inputRows(d)} * d.convolutionWidth(); }
uint64_t keyFloats(const DeltaNet& d) { return uint64_t{d.keyHeads} * d.keyLength * ChunkTokens; }
uint64_t valueFloats(const DeltaNet& d) { return uint64_t{d.valueHeads} * ChunkTokens * d.valueLength; }
uint64_t decayFloats(const DeltaNet& d) { return uint64_t{d.valueHeads} * ChunkTokens * (sizeof(double) / sizeof(float)); }

/// Every part is a multiple of 16 floats where the heads' lengths are, so that all of them stay aligned.
uint64_t layerFloats(const DeltaNet& d) {
  const uint64_t floats = sumFloats(d) + inputFloats(d) + keyFloats(d) + valueFloats(d) + decayFloats(d);
  return (floats + 15) / 16 * 16;
}

/// Calls `visit(offset, floats)` for every run of floats that `length` tokens left behind, and for nothing older.
template <class Visit> void visitUsed(const DeltaNet& d, uint32_t length, const Visit& visit) {
  const uint64_t width = d.convolutionWidth(), recent = std::min(length, DeltaNetStates::inputRows(d)), tail = length % ChunkTokens;
  uint64_t at = 0;
  if (length >= ChunkTokens) visit(at, sumFloats(d));
  at += sumFloats(d);
  for (uint64_t i = 1; i <= recent; ++i) visit(at + (length - i) % DeltaNetStates::inputRows(d) * width, width);
  at += inputFloats(d);
  if (tail == 0) return;
  for (uint64_t i = 0; i < uint64_t{d.keyHeads} * d.keyLength; ++i) visit(at + i * ChunkTokens, tail);
  at += keyFloats(d);
  for (uint64_t head = 0; head < d.valueHeads; ++head) visit(at + head * ChunkTokens * d.valueLength, tail * d.valueLength);
  at += valueFloats(d);
  constexpr uint64_t Wide = sizeof(double) / sizeof(float);
  for (uint64_t head = 0; head < d.valueHeads; ++head) visit(at + head * ChunkTokens * Wide, tail * Wide);
}

uint64_t usedBytes(std::span<const DeltaNet> layers, uint32_t length) {
  uint64_t floats = 0;
  for (const DeltaNet& layer : layers) visitUsed(layer, length, [&](uint64_t, uint64_t count) { floats += count; });
  return floats * sizeof(float);
}

struct Header {
  char magic[4] = {'M', 'B', 'D', 'N'};
  uint32_t version = 1;
  uint32_t layers = 0, length = 0;
  uint64_t shape = 0; ///< hash of the layers' sizes
  uint64_t checksum = 0; ///< of the header with 0 here and of the rest
};

uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29;
}

uint64_t hashOf(uint64_t hash, std::span<const std::byte> bytes) {
  uint64_t word = 0;
  for (; bytes.size() >= sizeof word; bytes = bytes.subspan(sizeof word)) {
    std::memcpy(&word, bytes.data(), sizeof word);
    hash = mix(hash, word);
  }
  word = 0;
  if (!bytes.empty()) std::memcpy(&word, bytes.data(), bytes.size());
  return mix(hash, word);
}

uint64_t checksumOf(Header header, std::span<const std::byte> payload) {
  header.checksum = 0;
  return hashOf(hashOf(payload.size(), std::as_bytes(std::span(&header, 1))), payload);
}

uint64_t shapeOf(std::span<const DeltaNet> layers) {
  uint64_t hash = ChunkTokens;
  for (const DeltaNet& d : layers)
    for (const uint32_t size : {d.keyHeads, d.valueHeads, d.keyLength, d.valueLength, d.convolution, DeltaNetStates::inputRows(d)}) hash = mix(hash, size);
  return hash;
}

Error broken(ErrorKind kind, const std::string& message) { return Error{kind, "state: " + message, "state"}; }

} // namespace

Result<DeltaNetStates> DeltaNetStates::create(std::vector<DeltaNet> layers, uint32_t states) {
  DeltaNetStates out;
  out.offsets_.push_back(0);
  for (const DeltaNet& layer : layers) out.offsets_.push_back(out.offsets_.back() + layerFloats(layer));
  auto memory = Region::reserve(states * out.offsets_.back() * sizeof(float), "recurrent states");
  if (!memory) return memory.error();
  out.layers_ = std::move(layers);
  out.memory_ = std::move(*memory);
  return out;
}

uint64_t DeltaNetStates::stateBytes(std::span<const DeltaNet> layers) {
  uint64_t floats = 0;
  for (const DeltaNet& layer : layers) floats += layerFloats(layer);
  return floats * sizeof(float);
}

float* DeltaNetStates::at(kv::StateId state, uint32_t layer) const {
  return memory_.as<float>() + static_cast<uint64_t>(state) * offsets_.back() + offsets_[layer];
}

DeltaNetStates::Layer DeltaNetStates::layer(kv::StateId state, uint32_t layer) const {
  const DeltaNet& d = layers_[layer];
  float* const sums = at(state, layer);
  float* const inputs = sums + sumFloats(d);
  float* const keys = inputs + inputFloats(d);
  float* const values = keys + keyFloats(d);
  return {sums, inputs, keys, values, reinterpret_cast<double*>(values + valueFloats(d))};
}

void DeltaNetStates::copy(kv::StateId from, kv::StateId to, uint32_t length) {
  for (uint32_t i = 0; i < layers_.size(); ++i)
    visitUsed(layers_[i], length, [source = at(from, i), target = at(to, i)](uint64_t offset, uint64_t floats) {
      std::memcpy(target + offset, source + offset, floats * sizeof(float));
    });
}

std::vector<std::byte> DeltaNetStates::save(kv::StateId state, uint32_t length) const {
  Header header;
  header.layers = static_cast<uint32_t>(layers_.size());
  header.length = length;
  header.shape = shapeOf(layers_);
  std::vector<std::byte> bytes(sizeof header + usedBytes(layers_, length));
  std::byte* out = bytes.data() + sizeof header;
  for (uint32_t i = 0; i < layers_.size(); ++i)
    visitUsed(layers_[i], length, [&out, source = at(state, i)](uint64_t offset, uint64_t floats) {
      std::memcpy(out, source + offset, floats * sizeof(float));
      out += floats * sizeof(float);
    });
  header.checksum = checksumOf(header, std::span(bytes).subspan(sizeof header));
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

Result<uint32_t> DeltaNetStates::load(std::span<const std::byte> bytes, kv::StateId state) {
  Header header;
  const Header expected;
  if (bytes.size() < sizeof header) return broken(ErrorKind::Invalid, "the bytes end within the header");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0) return broken(ErrorKind::Invalid, "the bytes are not a saved state");
  if (header.version != expected.version)
    return broken(ErrorKind::Inconsistent, "version " + std::to_string(header.version) + " instead of " + std::to_string(expected.version));
  if (header.layers != layers_.size() || header.shape != shapeOf(layers_)) return broken(ErrorKind::Inconsistent, "it belongs to a model of another shape");
  const auto payload = bytes.subspan(sizeof header);
  if (payload.size() != usedBytes(layers_, header.length)) return broken(ErrorKind::Invalid, "the bytes have the wrong length");
  if (checksumOf(header, payload) != header.checksum) return broken(ErrorKind::Invalid, "the checksum does not match");
  const std::byte* in = payload.data();
  for (uint32_t i = 0; i < layers_.size(); ++i)
    visitUsed(layers_[i], header.length, [&in, target = at(state, i)](uint64_t offset, uint64_t floats) {
      std::memcpy(target + offset, in, floats * sizeof(float));
      in += floats * sizeof(float);
    });
  return header.length;
}

} // namespace mashbox::cpu
