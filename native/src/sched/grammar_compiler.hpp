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
  /// Others have used up its memory since.
  bool worn() const { return *result_ && (**result_)->worn(); }
  const std::vector<std::byte>& ir() const { return ir_; }

private:
  friend class GrammarCompiler;
  std::vector<std::byte> ir_;
  mutable std::mutex mutex_;
  std::optional<Result<std::shared_ptr<const grammar::Grammar>>> result_;
};

/// Compiles grammars on a thread of its own, in the order in which they come; those that it knows are ready at once.
class GrammarCompiler {
public:
  /// `load` gives the model's vocabulary when the first grammar comes. `onReady` is called on the compiler's thread after each grammar.
  GrammarCompiler(std::function<Result<grammar::Tokens>()> load, std::function<void()> onReady);
  ~GrammarCompiler(); ///< ends after the grammar that is being compiled

  std::shared_ptr<const PendingGrammar> submit(std::vector<std::byte> ir);

private:
  void run();

  grammar::GrammarCache cache_;
  const std::function<void()> onReady_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<PendingGrammar>> jobs_;
  bool stopping_ = false;
  std::thread thread_; ///< started with the first job
};

} // namespace mashbox::sched
