#pragma once

#include "../tests/gguf_writer.hpp"
#include "quant/format.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace mashbox::bench {

/// A GGUF model of seeded random weights, right for speed and for nothing else. Keys and tensors are declared, then written in one pass.
class RandomModel {
public:
  explicit RandomModel(std::string architecture);

  const std::string& architecture() const { return architecture_; }
  RandomModel& count(const std::string& key, uint32_t value);
  RandomModel& counts(const std::string& key, const std::vector<uint32_t>& values);
  RandomModel& flags(const std::string& key, const std::vector<bool>& values);
  RandomModel& flag(const std::string& key, bool value);
  RandomModel& number(const std::string& key, float value);
  RandomModel& text(const std::string& key, const std::string& value);

  /// Instead of a vocabulary of made-up tokens: texts and types as a GGUF file has them.
  RandomModel& vocabulary(std::vector<std::string> texts, std::vector<int32_t> types);

  /// Values around `mean`; without a deviation those of a matrix, 1/√inputs. Rows of matrices are quantized once and repeated.
  void tensor(const std::string& name, const std::vector<uint64_t>& dims, quant::Type type, float mean = 0, float deviation = 0);
  /// A norm's weights.
  void ones(const std::string& name, uint64_t length) { tensor(name, {length}, quant::Type::F32, 1, 0.05f); }

  /// False where the file cannot be written.
  bool write(const std::string& path) const;

private:
  struct Tensor {
    std::string name;
    std::vector<uint64_t> dims;
    quant::Type type;
    float mean, deviation;
    uint64_t rows() const;
    uint64_t bytes() const;
  };

  std::string architecture_;
  test::GgufWriter keys_;
  std::vector<Tensor> tensors_;
  std::vector<std::string> tokens_;
  std::vector<int32_t> tokenTypes_;
};

/// Names of the families that `declare` knows.
std::vector<std::string> familyNames();
/// A mid-size model of a family: a few hundred MB at most.
RandomModel randomFamily(const std::string& family);
/// Qwen3 0.6B's shape with a vocabulary of this many tokens, about 380 MB.
RandomModel randomQwen3Small(uint32_t tokens);

} // namespace mashbox::bench
