#pragma once

#include "gguf/file.hpp"
#include "model/config.hpp"
#include "model/model.hpp"
#include "test.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace mashbox::test {

/// The value of a result; its error fails the test.
template <class T> T expect(Result<T> result, std::source_location where = std::source_location::current()) {
  check(static_cast<bool>(result), result ? "" : result.error().message, where);
  return std::move(*result);
}
inline void expect(Result<void> result, std::source_location where = std::source_location::current()) {
  check(static_cast<bool>(result), result ? "" : result.error().message, where);
}

inline std::filesystem::path projectRoot() { return std::filesystem::path(__FILE__).parent_path().parent_path().parent_path(); }

/// Every tier of this CPU, the lowest first.
inline std::vector<cpu::Isa> availableTiers() {
  std::vector<cpu::Isa> tiers;
  for (const cpu::Isa isa : {cpu::Isa::Scalar, cpu::Isa::Avx2, cpu::Isa::Avx512})
    if (cpu::kernels(std::min(isa, cpu::detectIsa())).isa == isa) tiers.push_back(isa);
  return tiers;
}

/// True in a build with AddressSanitizer or ThreadSanitizer, where heavy tests run a part of their cases and say so.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool Sanitized = true;
#else
inline constexpr bool Sanitized = false;
#endif

inline std::shared_ptr<const model::Model> loadModel(const std::filesystem::path& path, cpu::Isa isa, unsigned threads = 2) {
  return expect(model::Model::load({path.string(), threads, isa, {}}));
}

inline std::unique_ptr<model::Context> createContext(std::shared_ptr<const model::Model> model, model::KvType kvType, uint32_t slots = 1) {
  const uint32_t context = std::min(2048u, model->config().contextLength);
  return expect(model::Context::create(std::move(model), {slots, context, kvType, 256}));
}

/// Logits of every token of one new sequence, fed in chunks of `chunk` tokens.
inline std::vector<float> allLogits(model::Context& context, std::span<const int32_t> tokens, size_t chunk) {
  kv::Sequence sequence(context.pool());
  std::vector<float> all;
  for (size_t at = 0; at < tokens.size(); at += chunk) {
    const model::Segment segment{&sequence, tokens.subspan(at, std::min(chunk, tokens.size() - at)), model::Logits::All};
    const auto rows = expect(context.forward({&segment, 1}));
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

inline int32_t argmax(std::span<const float> logits) { return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()); }

/// The greedy continuation of a prompt, up to `count` tokens or one of `ends`, which is included.
inline std::vector<int32_t> greedy(model::Context& context, std::span<const int32_t> prompt, size_t count, std::span<const int32_t> ends = {}) {
  kv::Sequence sequence(context.pool());
  std::vector<int32_t> out;
  std::vector<int32_t> next(prompt.begin(), prompt.end());
  constexpr size_t Chunk = 256;
  for (; next.size() > Chunk; next.erase(next.begin(), next.begin() + Chunk)) {
    const model::Segment segment{&sequence, std::span(next).first(Chunk), model::Logits::None};
    expect(context.forward({&segment, 1}));
  }
  while (out.size() < count) {
    const model::Segment segment{&sequence, next, model::Logits::Last};
    next = {argmax(expect(context.forward({&segment, 1})))};
    out.push_back(next[0]);
    if (std::find(ends.begin(), ends.end(), next[0]) != ends.end()) break;
  }
  return out;
}

inline std::vector<float> readFloats(const std::filesystem::path& path) {
  const std::string bytes = readFile(path);
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
  return out;
}

inline bool sameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// How far `got` is from `want`: `worst` row by largest difference over largest value, `rms` over all rows together.
struct Distance {
  double worst = 0, rms = 0;
};

inline Distance distance(std::span<const float> got, std::span<const float> want, size_t width) {
  check(got.size() == want.size() && want.size() % width == 0, "rows of one size");
  Distance out;
  double squares = 0, wantSquares = 0;
  for (size_t row = 0; row < want.size(); row += width) {
    double largest = 0, difference = 0;
    for (size_t i = row; i < row + width; ++i) {
      const double d = static_cast<double>(got[i]) - want[i];
      check(std::isfinite(d), "finite logits");
      difference = std::max(difference, std::abs(d));
      largest = std::max(largest, std::abs(static_cast<double>(want[i])));
      squares += d * d;
      wantSquares += static_cast<double>(want[i]) * want[i];
    }
    out.worst = std::max(out.worst, difference / largest);
  }
  out.rms = std::sqrt(squares / wantSquares);
  return out;
}

} // namespace mashbox::test
