#include "sched/context_decoder.hpp"

#include "model/config.hpp"
#include "model/token_merges.hpp"
#include "model/token_texts.hpp"

#include <utility>

namespace mashbox::sched {

ContextDecoder::ContextDecoder(std::unique_ptr<model::Context> context, uint32_t batchTokens)
    : context_(std::move(context)), batchTokens_(batchTokens) {}

uint32_t ContextDecoder::vocabularySize() const { return context_->model().config().vocabulary; }
uint32_t ContextDecoder::knownTokens() const { return context_->model().config().tokens; }
uint32_t ContextDecoder::contextLength() const { return context_->contextLength(); }
uint32_t ContextDecoder::slots() const { return context_->slots(); }
uint32_t ContextDecoder::batchTokens() const { return batchTokens_; }
kv::BlockPool& ContextDecoder::pool() { return context_->pool(); }
Result<std::vector<grammar::TokenText>> ContextDecoder::tokenTexts() const { return model::tokenTexts(context_->model().file()); }
grammar::TokenMerges ContextDecoder::tokenMerges() const { return model::tokenMerges(context_->model().file()); }

Result<std::span<const float>> ContextDecoder::forward(std::span<const model::Segment> segments) { return context_->forward(segments); }

} // namespace mashbox::sched
