import type { NativeModelInfo } from "../engine/Native.ts"

const barWidth = 24

/** A bar that shows the fraction of the model that has been loaded. */
export const progressBar = (fraction: number): string => {
  const filled = Math.round(Math.min(Math.max(fraction, 0), 1) * barWidth)
  return `[${"█".repeat(filled)}${"·".repeat(barWidth - filled)}] ${String(Math.round(fraction * 100)).padStart(3)} %`
}

/** 1024-based, three significant digits: "5.98 MiB". */
export const formatBytes = (bytes: number): string => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"]
  const exponent = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), units.length - 1)
  const value = bytes / 1024 ** exponent
  return `${exponent === 0 || value >= 100 ? Math.round(value) : value.toPrecision(3)} ${units[exponent]}`
}

/** The line that says that the server is ready, where, with what, and what it costs. */
export const readyLine = (url: string, id: string, model: NativeModelInfo): string => {
  const { kvCache, scratch, weights } = model.memory
  return `${url} serves ${id} (${model.architecture}, ${model.isa}, ${model.threads} threads): ` +
    `${model.slots} slots of ${model.contextLength} tokens; ` +
    `memory: weights ${formatBytes(weights)}, KV cache up to ${formatBytes(kvCache)}, scratch ${formatBytes(scratch)}`
}
