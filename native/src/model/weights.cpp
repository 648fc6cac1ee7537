#include "model/weights.hpp"

namespace mashbox::model {
namespace {

AttentionWeights placeAttention(Placer& placer, const AttentionTensors& t) {
  return {placer.place(t.query),     placer.place(t.key),     placer.place(t.value), placer.place(t.output), placer.place(t.gate),
          placer.place(t.queryNorm), placer.place(t.keyNorm), placer.place(t.sinks)};
}

LayerWeights placeLayer(Placer& placer, const LayerTensors& layer) {
  LayerWeights out;
  out.mixerNorm = placer.place(layer.mixerNorm);
  out.mixerAfter = placer.place(layer.mixerAfter);
  if (layer.attention) out.attention = placeAttention(placer, *layer.attention);
  if (layer.deltaNet) out.deltaNet = placeDeltaNet(placer, *layer.deltaNet);
  out.feedForwardNorm = placer.place(layer.feedForwardNorm);
  out.feedForwardAfter = placer.place(layer.feedForwardAfter);
  if (const auto& dense = layer.feedForward) out.feedForward = {placer.place(dense->gate), placer.place(dense->up), placer.place(dense->down)};
  if (layer.experts) out.experts = placeExperts(placer, *layer.experts);
  const SideBySideTensors& norms = layer.sideBySide;
  out.sideBySide = {placer.place(norms.denseAfter), placer.place(norms.expertsBefore), placer.place(norms.expertsAfter), placer.place(norms.router)};
  if (const auto& own = layer.perLayer) out.perLayer = {placer.place(own->gate), placer.place(own->projection), placer.place(own->norm)};
  out.scale = layer.scale;
  return out;
}

} // namespace

Result<Weights> placeWeights(const Tensors& tensors, Device& device) {
  Placer placer(device);
  Weights out;
  out.embedding = placer.place(tensors.embedding);
  out.perLayerEmbedding = placer.place(tensors.perLayerEmbedding);
  out.perLayerNorm = placer.place(tensors.perLayerNorm);
  out.perLayerProjection = placer.place(tensors.perLayerProjection);
  for (const LayerTensors& layer : tensors.layers) out.layers.push_back(placeLayer(placer, layer));
  out.outputNorm = placer.place(tensors.outputNorm);
  out.output = tensors.output.weight == tensors.embedding ? PlacedLinear{out.embedding, Weight::None, 1} : placer.place(tensors.output);
  if (placer.error()) return *placer.error();
  return out;
}

} // namespace mashbox::model
