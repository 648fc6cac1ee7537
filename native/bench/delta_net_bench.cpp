#include "cpu/backend_delta_net.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <utility>
#include <vector>

// One gated delta net layer (16 heads of 128 × 128 unless told) on one core: microseconds per token of the chunked form at several
// lengths of prefill, of one decoded token, and of the same layer by the plain recurrence S ← e^g S + k δᵀ, which convolves,
// normalises and gates with the same kernels and whose outputs are compared. Besides those what the two have in common, and the recurrence
// alone, a row of S at a time or in blocks of 64 columns that stay in the first-level cache. Times are of the thread's processor time, the best of rounds that
// take all the subjects in turn.
// Usage: mashbox_delta_net_bench [key heads] [value heads]   MASHBOX_ISA chooses the tier.
namespace {

using namespace mashbox;

constexpr size_t Length = 128, Batch = 256, Rounds = 7;
constexpr float Epsilon = 1e-6f;

double processorSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

template <class Run> void improve(double& best, const Run& run) {
  const double start = processorSeconds();
  run();
  best = std::min(best, processorSeconds() - start);
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
  if (isa >= cpu::Isa::Avx512) return blocks ? blocks512 : rows512;
  if (isa == cpu::Isa::Avx2) return blocks ? blocks2 : rows2;
#endif
  return blocks ? blocks0 : rows0;
}

/// A random layer's weights and the projections of `Batch` tokens, which come again and again.
struct Inputs {
  model::DeltaNet shape;
  size_t width = shape.convolutionWidth(), outWidth = shape.valueHeads * Length;
  cpu::LineVector<float> mixed, gate, beta, alpha, taps, bias, decay, norm;

  explicit Inputs(const model::DeltaNet& shape) : shape(shape), decay(shape.valueHeads, -0.05f), norm(Length, 1) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (const auto& [values, count] : {std::pair{&mixed, Batch * width}, {&gate, Batch * outWidth}, {&beta, Batch * shape.valueHeads}, {&alpha, Batch * shape.valueHeads},
                                        {&taps, shape.convolution * width}, {&bias, size_t{shape.valueHeads}}}) {
      values->resize(count);
      for (float& x : *values) x = normal(random);
    }
  }
};

class Chunked {
public:
  Chunked(const Inputs& in, cpu::Isa isa) : in_(in), pool_(1), mixer_(created(in.shape, isa, pool_)), out(Batch * in.outWidth) {}

  void run(size_t from, size_t to) {
    const model::RowRange range{0, static_cast<uint32_t>(to - from), static_cast<uint32_t>(from), {}, {}};
    const auto at = [row = from % Batch](const cpu::LineVector<float>& values, size_t width, size_t offset, size_t each) {
      return cpu::DeltaNetInput{values.data() + row * width + offset, width, 1, each, 0};
    };
    const size_t keys = in_.shape.keyHeads * Length;
    mixer_.begin({&range, 1});
    mixer_.run({0, at(in_.mixed, in_.width, 0, Length), at(in_.mixed, in_.width, keys, Length), at(in_.mixed, in_.width, 2 * keys, Length), at(in_.gate, in_.outWidth, 0, Length),
                at(in_.beta, in_.shape.valueHeads, 0, 1), at(in_.alpha, in_.shape.valueHeads, 0, 1), in_.taps.data(), in_.bias.data(), in_.decay.data(), in_.norm.data(), Epsilon,
                out.data() + from % Batch * in_.outWidth});
  }

private:
  static cpu::DeltaNetMixer created(const model::DeltaNet& shape, cpu::Isa isa, cpu::ThreadPool& pool) {
    auto states = cpu::DeltaNetStates::create({shape}, 1);
    if (!states) std::fprintf(stderr, "%s\n", states.error().message.c_str()), std::exit(1);
    auto mixer = cpu::DeltaNetMixer::create(std::move(*states), Batch, cpu::kernels(isa), pool);
    if (!mixer) std::fprintf(stderr, "%s\n", mixer.error().message.c_str()), std::exit(1);
    return std::move(*mixer);
  }

  const Inputs& in_;
  cpu::ThreadPool pool_;
  cpu::DeltaNetMixer mixer_;

public:
  cpu::LineVector<float> out; ///< of the last `Batch` tokens
};

/// The layer token after token: convolution, norms, a pass over every head's state, gated norm.
class Recurrent {
public:
  /// `body` null leaves out the passes over the state.
  Recurrent(const Inputs& in, cpu::Isa isa, Recur body)
      : in_(in), kernels_(cpu::kernels(isa)), convolve_(cpu::deltaNetKernels(isa).convolve), body_(body), keyNorm_(Length, 1 / std::sqrt(float(Length))),
        queryNorm_(Length, 1 / float(Length)), zeros_(in.width), row_(in.width), sums_(in.outWidth * Length), out(Batch * in.outWidth) {}

  void restart() { std::fill(sums_.begin(), sums_.end(), 0.0f); }
  void run(size_t from, size_t to) {
    for (size_t position = from; position < to; ++position) token(position);
  }

private:
  void token(size_t position) {
    const size_t row = position % Batch, keys = in_.shape.keyHeads * Length;
    std::array<const float*, 4> inputs;
    for (size_t back = 0; back < inputs.size(); ++back) inputs[inputs.size() - 1 - back] = back > position ? zeros_.data() : in_.mixed.data() + (position - back) % Batch * in_.width;
    convolve_(inputs.data(), in_.taps.data(), in_.width, inputs.size(), row_.data(), in_.width);
    for (size_t head = 0; head < in_.shape.keyHeads; ++head) {
      float* const query = row_.data() + head * Length;
      kernels_.rmsNorm(query, queryNorm_.data(), Epsilon / Length, query, Length);
      kernels_.rmsNorm(query + keys, keyNorm_.data(), Epsilon / Length, query + keys, Length);
    }
    for (size_t head = 0; head < in_.shape.valueHeads; ++head) {
      const size_t gate = row * in_.shape.valueHeads + head;
      const float* const key = row_.data() + head % in_.shape.keyHeads * Length;
      const float decay = std::exp(std::log1p(std::exp(in_.alpha[gate] + in_.bias[head])) * in_.decay[head]);
      const Token token{key, key + keys, row_.data() + 2 * keys + head * Length, decay, 1 / (1 + std::exp(-in_.beta[gate]))};
      float* const result = out.data() + gate * Length;
      if (body_)
        body_(&token, 1, sums_.data() + head * Length * Length, result);
      kernels_.rmsNorm(result, in_.norm.data(), Epsilon, result, Length);
      kernels_.siluMul(in_.gate.data() + gate * Length, result, result, Length);
    }
  }

  const Inputs& in_;
  const cpu::Kernels& kernels_;
  decltype(cpu::DeltaNetKernels::convolve) convolve_;
  Recur body_;
  cpu::LineVector<float> keyNorm_, queryNorm_, zeros_, row_, sums_;

public:
  cpu::LineVector<float> out; ///< of the last `Batch` tokens
};

/// The recurrence over vectors that lie ready.
class Bare {
public:
  explicit Bare(const Inputs& in) : in_(in), sums_(in.outWidth * Length), out_(in.outWidth * Batch) {
    for (size_t head = 0; head < in.shape.valueHeads; ++head)
      for (size_t t = 0; t < Batch; ++t) {
        const float* const row = in.mixed.data() + t * in.width;
        const size_t key = head % in.shape.keyHeads * Length, keys = in.shape.keyHeads * Length;
        tokens_.push_back({row + key, row + keys + key, row + 2 * keys + head * Length, 0.95f, 1e-3f});
      }
  }

  void run(Recur body, size_t step) {
    for (size_t at = 0; at < Batch; at += step)
      for (size_t head = 0; head < in_.shape.valueHeads; ++head)
        body(tokens_.data() + head * Batch + at, step, sums_.data() + head * Length * Length, out_.data() + (head * Batch + at) * Length);
  }

private:
  const Inputs& in_;
  std::vector<Token> tokens_;
  cpu::LineVector<float> sums_, out_;
};

double difference(const cpu::LineVector<float>& got, const cpu::LineVector<float>& want) {
  double squares = 0, differences = 0;
  for (size_t i = 0; i < want.size(); ++i) differences += std::pow(double(got[i]) - want[i], 2), squares += std::pow(double(want[i]), 2);
  return std::sqrt(differences / squares);
}

} // namespace

int main(int argc, char** argv) {
  const auto isa = cpu::chooseIsa(std::getenv("MASHBOX_ISA"));
  if (!isa) return std::fprintf(stderr, "%s\n", isa.error().message.c_str()), 1;
  model::DeltaNet shape{.keyHeads = 16, .valueHeads = 16, .keyLength = Length, .valueLength = Length};
  if (argc > 1) shape.keyHeads = static_cast<uint32_t>(std::max(1, std::atoi(argv[1])));
  shape.valueHeads = argc > 2 ? static_cast<uint32_t>(std::max(1, std::atoi(argv[2]))) : shape.keyHeads;
  if (shape.valueHeads % shape.keyHeads != 0) return std::fprintf(stderr, "the key heads must divide the value heads\n"), 1;

  const Inputs in(shape);
  Chunked chunked(in, *isa);
  Recurrent recurrent(in, *isa, recurrence(*isa, false)), around(in, *isa, nullptr);
  Bare bare(in);
  constexpr std::array<size_t, 4> Lengths{64, 256, 1024, 4096};
  constexpr size_t Most = Lengths.back(), Compared = 2 * Batch, Decoded = 128;
  std::array<double, Most / Batch> batches;
  batches.fill(1e30);
  double chunk = 1e30, decode = 1e30, layer = 1e30, common = 1e30, rows = 1e30, blocks = 1e30, apart = 0;
  for (size_t round = 0; round < Rounds; ++round) {
    improve(chunk, [&] { chunked.run(0, 64); });
    recurrent.restart();
    for (size_t at = 0; at < Compared; at += Batch) improve(layer, [&] { recurrent.run(at, at + Batch); });
    for (size_t i = 0; i < batches.size(); ++i) {
      improve(batches[i], [&] { chunked.run(i * Batch, (i + 1) * Batch); });
      if ((i + 1) * Batch == Compared) apart = difference(chunked.out, recurrent.out);
    }
    improve(decode, [&] {
      for (size_t at = Most; at < Most + Decoded; ++at) chunked.run(at, at + 1);
    });
    improve(common, [&] { around.run(0, Batch); });
    improve(rows, [&] { bare.run(recurrence(*isa, false), 1); });
    improve(blocks, [&] { bare.run(recurrence(*isa, true), Batch); });
  }

  std::printf("%u key heads, %u value heads of 128 × 128, %s, one core\n", shape.keyHeads, shape.valueHeads, cpu::isaName(*isa));
  double each = 0;
  for (const size_t tokens : Lengths) {
    double seconds = tokens < Batch ? chunk : 0;
    for (size_t i = 0; i < tokens / Batch; ++i) seconds += batches[i];
    each = seconds / static_cast<double>(tokens);
    std::printf("chunked, prefill of %4zu           %7.2f us per token\n", tokens, each * 1e6);
  }
  std::printf("chunked, one token at a time       %7.2f us per token\n", decode / Decoded * 1e6);
  const auto show = [](const char* name, double seconds) { std::printf("%-34s %7.2f us per token\n", name, seconds / Batch * 1e6); };
  show("the layer, token after token", layer);
  show("  convolution, norms and gates", common);
  show("  the recurrence alone", rows);
  show("  in blocks in cache, head by head", blocks);
  const double aside = common / Batch;
  std::printf("token after token : chunked, prefill of %zu: the layer %.2f, without convolution, norms and gates %.2f\n", Most, layer / Batch / each,
              (layer / Batch - aside) / (each - aside));
  std::printf("the layer's outputs differ by %.1e\n", apart);
  return apart < 1e-4 ? 0 : 1;
}
