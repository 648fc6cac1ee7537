#include "gguf.hpp"
#include "mutate.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include <time.h>

extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

/// No input may make the reader ask for much more than its own size; AddressSanitizer ends the run when it does.
extern "C" const char* __asan_default_options() { return "max_allocation_size_mb=64:allocator_may_return_null=0:handle_abort=1"; }

namespace mashbox::fuzz {
namespace {

struct Options {
  double seconds = 10;
  uint64_t seed = std::random_device()();
  std::filesystem::path corpus = std::filesystem::path(__FILE__).parent_path() / "corpus";
};

/// The input that runs now, for the report of a crash.
struct Current {
  uint64_t seed = 0, iteration = 0;
  const std::string* bytes = nullptr;
} current;

void reportCrash() {
  if (current.bytes == nullptr) return;
  const std::string name = "crash-" + std::to_string(current.seed) + "-" + std::to_string(current.iteration) + ".gguf";
  std::ofstream(name, std::ios::binary) << *current.bytes;
  std::fprintf(stderr, "seed %llu iteration %llu: the input is in %s\n", static_cast<unsigned long long>(current.seed),
               static_cast<unsigned long long>(current.iteration), name.c_str());
}

double threadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

/// Runs one input in an allocation of exactly its size, so that a read past the end is seen. False when it takes too long.
bool runOne(const std::string& bytes) {
  constexpr double slow = 1;
  current.bytes = &bytes;
  const auto exact = std::make_unique<uint8_t[]>(bytes.size());
  std::memcpy(exact.get(), bytes.data(), bytes.size());
  const double start = threadSeconds();
  LLVMFuzzerTestOneInput(exact.get(), bytes.size());
  const double took = threadSeconds() - start;
  if (took <= slow) return true;
  std::fprintf(stderr, "an input of %zu bytes takes %.1f s\n", bytes.size(), took);
  reportCrash();
  return false;
}

std::vector<std::string> loadCorpus(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
  } else {
    files.push_back(path);
  }
  std::vector<std::string> corpus;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return corpus;
}

/// Inputs with an outcome that was not seen before join the corpus: the little guidance that needs no instrumentation.
int fuzz(const Options& options) {
  constexpr size_t largestCorpus = 1024;
  std::vector<std::string> corpus = loadCorpus(options.corpus);
  if (corpus.empty()) {
    std::fprintf(stderr, "no seeds in %s\n", options.corpus.c_str());
    return 2;
  }
  std::printf("seed %llu, %zu files\n", static_cast<unsigned long long>(options.seed), corpus.size());
  std::fflush(stdout);
  std::mt19937_64 random(options.seed);
  std::set<std::string> outcomes;
  current.seed = options.seed;
  for (const std::string& seed : corpus) {
    if (!runOne(seed)) return 1;
    outcomes.insert(lastOutcome());
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.seconds);
  uint64_t accepted = 0;
  const size_t seeds = corpus.size();
  while (std::chrono::steady_clock::now() < deadline) {
    ++current.iteration;
    const std::string bytes = mutate(corpus[random() % (random() % 2 == 0 ? seeds : corpus.size())], corpus, random);
    if (!runOne(bytes)) return 1;
    accepted += lastOutcome() == "accepted";
    if (outcomes.insert(lastOutcome()).second && corpus.size() < largestCorpus) corpus.push_back(bytes);
  }
  std::printf("%llu inputs, %llu accepted, %zu different outcomes, no failure; seed %llu\n", static_cast<unsigned long long>(current.iteration),
              static_cast<unsigned long long>(accepted), outcomes.size(), static_cast<unsigned long long>(options.seed));
  return 0;
}

template <class T> bool parseNumber(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::optional<Options> parseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const std::string_view value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--seconds" && parseNumber(value, options.seconds))
      ++i;
    else if (name == "--seed" && parseNumber(value, options.seed))
      ++i;
    else if (!name.starts_with("--"))
      options.corpus = name;
    else
      return std::nullopt;
  }
  return options;
}

} // namespace
} // namespace mashbox::fuzz

/// mashbox_fuzz_gguf [--seconds N] [--seed S] [corpus folder, or one file to run and vary]
int main(int argc, char** argv) {
  const auto options = mashbox::fuzz::parseOptions(argc, argv);
  if (!options) {
    std::fprintf(stderr, "usage: %s [--seconds N] [--seed S] [corpus folder or file]\n", argv[0]);
    return 2;
  }
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(mashbox::fuzz::reportCrash);
  return mashbox::fuzz::fuzz(*options);
}
