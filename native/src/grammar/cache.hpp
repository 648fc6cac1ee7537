#pragma once

#include "grammar/grammar.hpp"

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace mashbox::grammar {

/// Compiled grammars of one model by their bytes, the least recently used dropped first. Any thread may use it.
class GrammarCache {
public:
  /// `load` gives the model's vocabulary when the first grammar comes; at most `most` grammars and about `mostBytes` are kept.
  explicit GrammarCache(std::function<Result<Tokens>()> load, size_t most = 64, size_t mostBytes = 256 << 20, Limits limits = {});

  /// The grammar if it is there and not worn; takes no time.
  std::shared_ptr<const Grammar> find(std::span<const std::byte> ir);
  /// Compiles it where need be, which may take as long as the limits allow.
  Result<std::shared_ptr<const Grammar>> get(std::span<const std::byte> ir);

private:
  struct Entry {
    std::string ir;
    std::shared_ptr<const Grammar> grammar;
  };

  Result<std::shared_ptr<const Vocabulary>> vocabulary();
  void evict();

  const std::function<Result<Tokens>()> load_;
  const size_t most_, mostBytes_;
  const Limits limits_;
  std::mutex mutex_, loading_;
  std::shared_ptr<const Vocabulary> vocabulary_; ///< guarded by loading_
  std::list<Entry> entries_;                     ///< the one that was used last comes first
};

} // namespace mashbox::grammar
