#include "gguf/file.hpp"
#include "random_model.hpp"

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

// Writes a model of seeded random weights with Qwen3 0.6B's shape and the vocabulary of another file.
// Usage: mashbox_random_qwen3 VOCABULARY.gguf FILE
int main(int argc, char** argv) {
  using namespace mashbox;
  if (argc != 3) return std::fprintf(stderr, "usage: %s VOCABULARY.gguf FILE\n", argv[0]), 2;
  const auto file = gguf::File::open(argv[1]);
  if (!file) return std::fprintf(stderr, "%s\n", file.error().message.c_str()), 1;
  const auto texts = file->requireStrings("tokenizer.ggml.tokens");
  if (!texts) return std::fprintf(stderr, "%s\n", texts.error().message.c_str()), 1;
  const auto types = file->requireUints("tokenizer.ggml.token_type", texts->size());
  if (!types) return std::fprintf(stderr, "%s\n", types.error().message.c_str()), 1;
  bench::RandomModel model = bench::randomQwen3Small(static_cast<uint32_t>(texts->size()));
  model.vocabulary({texts->begin(), texts->end()}, {types->begin(), types->end()});
  const std::string part = std::string(argv[2]) + ".part";
  if (!model.write(part)) return std::fprintf(stderr, "%s cannot be written\n", part.c_str()), 1;
  std::filesystem::rename(part, argv[2]);
}
