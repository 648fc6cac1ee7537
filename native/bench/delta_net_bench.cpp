#include "cpu/backend_delta_net.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

// One gated delta net layer (16 heads of 128 × 128 unless told): microseconds per token of the chunked form at several lengths of
// prefill, of one decoded token, and of the plain recurrence S ← e^g S + k δᵀ over the same tokens, in the same run. The recurrence
// gets a row of S at a time (as engines without the chunked form run it) or blocks of 64 columns that stay in the first-level cache.
// Usage: mashbox_delta_net_bench [key heads] [value heads]   MASHBOX_ISA chooses the tier.
namespace {

using namespace mashbox;

constexpr size_t Length = 128;

template <class Run> double best(int passes, const Run& run) {
  double seconds = 1e30;
  for (int i = 0; i < passes; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    seconds = std::min(seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return seconds;
}

/// Vectors of q, k and v of one token and head, and its gates.
struct Token {
  const float *query, *key, *value;
  float decay, beta;
};

/// One token through `Columns` columns of one head's state.
template <size_t Columns> [[gnu::always_inline]] inline void recurColumns(const Token& token, float* state, float* out) {
  float seen[Columns] = {}, delta[Columns], sum[Columns] = {};
  for (size_t d = 0; d < Length; ++d)
    for (size_t v = 0; v < Columns; ++v) seen[v] += state[d * Length + v] * token.key[d];
  for (size_t v = 0; v < Columns; ++v) delta[v] = token.beta * (token.value[v] - token.decay * seen[v]);
  for (size_t d = 0; d < Length; ++d)
    for (size_t v = 0; v < Columns; ++v) {
      float& s = state[d * Length + v];
      s = s * token.decay + token.key[d] * delta[v];
      sum[v] += s * token.query[d];
    }
  for (size_t v = 0; v < Columns; ++v) out[v] = sum[v];
}

using Recur = void (*)(const Token*, size_t, float*, float*);

/// Every token through one head's state, `Columns` columns at a time.
template <size_t Columns> [[gnu::always_inline]] inline void recurHead(const Token* tokens, size_t count, float* state, float* out) {
  for (size_t first = 0; first < Length; first += Columns)
    for (size_t t = 0; t < count; ++t) {
      Token token = tokens[t];
      token.value += first;
      recurColumns<Columns>(token, state + first, out + t * Length + first);
    }
}

#if defined(__x86_64__)
#define AVX512 gnu::target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,prefer-vector-width=512")
#define AVX2 gnu::target("avx2,fma")
[[AVX512]] void rows512(const Token* t, size_t n, float* s, float* o) { recurHead<Length>(t, n, s, o); }
[[AVX512]] void blocks512(const Token* t, size_t n, float* s, float* o) { recurHead<64>(t, n, s, o); }
[[AVX2]] void rows2(const Token* t, size_t n, float* s, float* o) { recurHead<Length>(t, n, s, o); }
[[AVX2]] void blocks2(const Token* t, size_t n, float* s, float* o) { recurHead<32>(t, n, s, o); }
#endif
void rows0(const Token* t, size_t n, float* s, float* o) { recurHead<Length>(t, n, s, o); }
void blocks0(const Token* t, size_t n, float* s, float* o) { recurHead<16>(t, n, s, o); }

Recur recurrence(cpu::Isa isa, bool blocks) {
#if defined(__x86_64__)
  if (isa == cpu::Isa::Avx512) return blocks ? blocks512 : rows512;
  if (isa == cpu::Isa::Avx2) return blocks ? blocks2 : rows2;
#endif
  return blocks ? blocks0 : rows0;
}

} // namespace

int main(int argc, char** argv) {
  const auto isa = cpu::chooseIsa(std::getenv("MASHBOX_ISA"));
  if (!isa) return std::fprintf(stderr, "%s\n", isa.error().message.c_str()), 1;
  model::DeltaNet shape{.keyHeads = 16, .valueHeads = 16, .keyLength = Length, .valueLength = Length};
  if (argc > 1) shape.keyHeads = static_cast<uint32_t>(std::max(1, std::atoi(argv[1])));
  shape.valueHeads = argc > 2 ? static_cast<uint32_t>(std::max(1, std::atoi(argv[2]))) : shape.keyHeads;
  if (shape.valueHeads % shape.keyHeads != 0) return std::fprintf(stderr, "the key heads must divide the value heads\n"), 1;

  constexpr size_t Most = 4096, Batch = 256;
  const size_t width = shape.convolutionWidth(), outWidth = shape.valueHeads * Length;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const auto values = [&](size_t n) {
    std::vector<float> out(n);
    for (float& x : out) x = normal(random);
    return out;
  };
  const auto mixed = values(Batch * width), gate = values(Batch * outWidth), gates = values(Batch * 2 * shape.valueHeads), taps = values(4 * width), bias = values(shape.valueHeads);
  const std::vector<float> decay(shape.valueHeads, -0.05f), norm(Length, 1);
  std::vector<float> out(Batch * outWidth);

  cpu::ThreadPool pool(cpu::availableCores());
  auto states = cpu::DeltaNetStates::create({shape}, 1);
  if (!states) return std::fprintf(stderr, "%s\n", states.error().message.c_str()), 1;
  auto mixer = cpu::DeltaNetMixer::create(std::move(*states), Batch, cpu::kernels(*isa), pool);
  if (!mixer) return std::fprintf(stderr, "%s\n", mixer.error().message.c_str()), 1;
  const float* m = mixed.data();
  const cpu::DeltaNetRows rows{0,
                               {m, width, 1, Length, 0},
                               {m + shape.keyHeads * Length, width, 1, Length, 0},
                               {m + 2 * shape.keyHeads * Length, width, 1, Length, 0},
                               {gate.data(), outWidth, 1, Length, 0},
                               {gates.data(), 2 * shape.valueHeads, 1, 1, 0},
                               {gates.data() + shape.valueHeads, 2 * shape.valueHeads, 1, 1, 0},
                               taps.data(),
                               bias.data(),
                               decay.data(),
                               norm.data(),
                               1e-6f,
                               out.data()};
  const auto run = [&](size_t from, size_t to) {
    const model::RowRange range{0, static_cast<uint32_t>(to - from), static_cast<uint32_t>(from), {}, {}};
    mixer->begin({&range, 1});
    mixer->run(rows);
  };

  std::printf("%u key heads, %u value heads of 128 × 128, %s, %u threads\n", shape.keyHeads, shape.valueHeads, cpu::isaName(*isa), pool.size());
  double chunked = 0;
  for (const size_t tokens : {64, 256, 1024, 4096}) {
    const double seconds = best(3, [&] {
      for (size_t at = 0; at < tokens; at += Batch) run(at, std::min(tokens, at + Batch));
    });
    chunked = seconds / static_cast<double>(tokens);
    std::printf("chunked, prefill of %4zu        %8.2f us per token\n", tokens, chunked * 1e6);
  }
  const double decoded = best(3, [&] {
    for (size_t at = Most; at < Most + 256; ++at) run(at, at + 1);
  }) / 256;
  std::printf("chunked, one token at a time    %8.2f us per token\n", decoded * 1e6);

  std::vector<float> sums(shape.valueHeads * Length * Length), heads(shape.valueHeads * Batch * Length);
  std::vector<Token> tokens;
  for (size_t head = 0; head < shape.valueHeads; ++head)
    for (size_t t = 0; t < Batch; ++t) {
      const float* const row = m + t * width;
      const size_t key = head % shape.keyHeads * Length;
      tokens.push_back({row + key, row + shape.keyHeads * Length + key, row + 2 * shape.keyHeads * Length + head * Length, 0.95f, 1e-3f});
    }
  const auto recur = [&](const char* name, bool blocks, size_t step) {
    const Recur body = recurrence(*isa, blocks);
    const double seconds = best(3, [&] {
      for (size_t at = 0; at < Batch; at += step)
        pool.parallelFor(shape.valueHeads, 1, [&](size_t begin, size_t end, unsigned) {
          for (size_t head = begin; head < end; ++head)
            body(tokens.data() + head * Batch + at, step, sums.data() + head * Length * Length, heads.data() + (head * Batch + at) * Length);
        });
    });
    const double each = seconds / Batch;
    std::printf("%-31s %8.2f us per token, %5.2f x the chunked form\n", name, each * 1e6, each / chunked);
  };
  recur("recurrence, token after token", false, 1);
  recur("recurrence, head after head", false, Batch);
  recur("recurrence, blocks in cache", true, Batch);
  return 0;
}
