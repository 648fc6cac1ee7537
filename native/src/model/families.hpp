#pragma once

/// Every family that this engine knows: its architecture's name in GGUF and the mapping, of a file of its own, that reads its keys.
#define MASHBOX_FAMILIES(family) \
  family("gemma2", mapGemma2) \
  family("gemma3", mapGemma3) \
  family("gemma4", mapGemma4) \
  family("gpt-oss", mapGptOss) \
  family("laguna", mapLaguna) \
  family("llama", mapLlama) \
  family("qwen2", mapQwen2) \
  family("qwen2moe", mapQwen2Moe) \
  family("qwen3", mapQwen3) \
  family("qwen3moe", mapQwen3Moe) \
  family("qwen3next", mapQwen3Next) \
  family("qwen35", mapQwen35) \
  family("qwen35moe", mapQwen35Moe) \
  family("smollm3", mapSmollm3)
