#pragma once

#include "grammar/cache.hpp"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace mashbox::sched {

/// A grammar that is being compiled, or has been.
class PendingGrammar {
public:
  bool ready() const;
  /// Once it is ready.
  const Result<std::shared_ptr<const grammar::Grammar>>& result() const { return *result_; }

private:
  friend class GrammarCompiler;
  mutable std::mutex mutex_;
  std::optional<Result<std::shared_ptr<const grammar::Grammar>>> result_;
};

/// Compiles grammars on a thread of its own, in the order in which they come; those that it knows are ready at once.
class GrammarCompiler {
public:
  /// `load` gives the model's vocabulary when the first grammar comes. `onReady` is called on the compiler's thread after each grammar.
  GrammarCompiler(std::function<Result<std::vector<grammar::TokenText>>()> load, std::function<void()> onReady);
  ~GrammarCompiler(); ///< ends after the grammar that is being compiled

  std::shared_ptr<const PendingGrammar> submit(std::vector<std::byte> ir);

private:
  struct Job {
    std::vector<std::byte> ir;
    std::shared_ptr<PendingGrammar> pending;
  };

  void run();

  grammar::GrammarCache cache_;
  const std::function<void()> onReady_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  bool stopping_ = false;
  std::thread thread_; ///< started with the first job
};

} // namespace mashbox::sched
