#include "sched/grammar_compiler.hpp"

#include <new>
#include <system_error>
#include <utility>

namespace mashbox::sched {

bool PendingGrammar::ready() const {
  const std::lock_guard lock(mutex_);
  return result_.has_value();
}

GrammarCompiler::GrammarCompiler(std::function<Result<grammar::Tokens>()> load, std::function<void()> onReady)
    : cache_(std::move(load)), onReady_(std::move(onReady)) {}

GrammarCompiler::~GrammarCompiler() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<const PendingGrammar> GrammarCompiler::submit(std::vector<std::byte> ir) {
  auto pending = std::make_shared<PendingGrammar>();
  pending->ir_ = std::move(ir);
  if (auto known = cache_.find(pending->ir_)) {
    pending->result_.emplace(std::move(known));
    return pending;
  }
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {
      pending->result_.emplace(Error{ErrorKind::OutOfMemory, "cannot start a thread for grammars", "grammar"});
      return pending;
    }
  }
  jobs_.push_back(pending);
  wake_.notify_one();
  return pending;
}

void GrammarCompiler::run() {
  for (;;) {
    std::shared_ptr<PendingGrammar> pending;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      pending = std::move(jobs_.front());
      jobs_.pop_front();
    }
    const auto compiled = [&]() -> Result<std::shared_ptr<const grammar::Grammar>> {
      try {
        auto compiled = cache_.get(pending->ir_);
        if (compiled) (*compiled)->warm();
        return compiled;
      } catch (const std::bad_alloc&) {
        return Error{ErrorKind::OutOfMemory, "out of memory while compiling a grammar", "grammar"};
      }
    }();
    {
      const std::lock_guard lock(pending->mutex_);
      pending->result_.emplace(compiled);
    }
    onReady_();
  }
}

} // namespace mashbox::sched
