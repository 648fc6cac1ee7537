#include "grammar/cache.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace mashbox::grammar {

GrammarCache::GrammarCache(std::function<Result<Tokens>()> load, size_t most, size_t mostBytes, Limits limits)
    : load_(std::move(load)), most_(most), mostBytes_(mostBytes), limits_(limits) {}

std::shared_ptr<const Grammar> GrammarCache::find(std::span<const std::byte> ir) {
  const std::string_view key(reinterpret_cast<const char*>(ir.data()), ir.size());
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.ir == key; });
  if (known == entries_.end()) return nullptr;
  if (known->grammar->worn()) {
    entries_.erase(known);
    return nullptr;
  }
  entries_.splice(entries_.begin(), entries_, known);
  return entries_.front().grammar;
}

Result<std::shared_ptr<const Grammar>> GrammarCache::get(std::span<const std::byte> ir) {
  if (auto known = find(ir)) return known;
  auto tokens = vocabulary();
  if (!tokens) return std::move(tokens).error();
  auto grammar = Grammar::compile(ir, *std::move(tokens), limits_);
  if (!grammar) return std::move(grammar).error();
  const std::lock_guard lock(mutex_);
  entries_.push_front({std::string(reinterpret_cast<const char*>(ir.data()), ir.size()), *grammar});
  evict();
  return *std::move(grammar);
}

/// The newest one stays, whatever it takes.
void GrammarCache::evict() {
  size_t bytes = 0, kept = 0;
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry, ++kept) {
    bytes += entry->ir.size() + entry->grammar->bytes();
    if (kept == 0 || (kept < most_ && bytes <= mostBytes_)) continue;
    entries_.erase(entry, entries_.end());
    return;
  }
}

Result<std::shared_ptr<const Vocabulary>> GrammarCache::vocabulary() {
  const std::lock_guard lock(loading_);
  if (!vocabulary_) {
    auto tokens = load_();
    if (!tokens) return std::move(tokens).error();
    vocabulary_ = std::make_shared<const Vocabulary>(std::move(tokens->texts), tokens->merges);
  }
  return vocabulary_;
}

} // namespace mashbox::grammar
