#pragma once

#include "sched/decoder.hpp"

#include <memory>

namespace mashbox::sched {

/// A model's context as the scheduler's decoder.
class ContextDecoder : public Decoder {
public:
  /// `batchTokens` as in the options that `context` was made with.
  ContextDecoder(std::unique_ptr<model::Context> context, uint32_t batchTokens);

  uint32_t vocabularySize() const override;
  uint32_t knownTokens() const override;
  uint32_t contextLength() const override;
  uint32_t slots() const override;
  uint32_t batchTokens() const override;
  kv::BlockPool& pool() override;
  Result<std::vector<grammar::TokenText>> tokenTexts() const override;
  grammar::TokenMerges tokenMerges() const override;
  Result<std::span<const float>> forward(std::span<const model::Segment> segments) override;

private:
  std::unique_ptr<model::Context> context_;
  uint32_t batchTokens_;
};

} // namespace mashbox::sched
