import type { EngineLogprobs } from "./Logprobs.ts"
import { PacketReader, ProtocolError } from "./Packets.ts"

/** Error kinds of the native core, in the order in which a frame numbers them. */
export const nativeErrorCodes = [
  "not_found",
  "truncated",
  "invalid",
  "unsupported",
  "inconsistent",
  "out_of_memory",
  "rejected",
  "too_complex",
  "dead_end"
] as const
export type NativeErrorCode = typeof nativeErrorCodes[number]

export const doneReasons = ["stop", "length", "cancelled"] as const
export type DoneReason = typeof doneReasons[number]

/** The engine's own counts of one generation; times in milliseconds. */
export interface DoneCounts {
  readonly promptTokens: number
  readonly cachedTokens: number
  readonly generatedTokens: number
  readonly queueMs: number
  readonly promptMs: number
  readonly generationMs: number
}

/** What a frame says about requests. Called synchronously, once per record, in order; must not throw. */
export interface RequestHandler {
  /** `logprobs` where the request asked for them. */
  token(id: number, token: number, logprobs?: EngineLogprobs): void
  /** The token that ended the output; not one of the generated tokens. */
  stopToken(id: number, token: number): void
  progress(id: number, processed: number, total: number): void
  done(id: number, reason: DoneReason, counts: DoneCounts): void
  /** `subject`: the field to blame, where the engine refused the request for one. */
  failed(id: number, code: NativeErrorCode, message: string, subject?: string): void
  /** KV blocks in use after a step and in all: of the layers that see everything, and of those with a sliding window. */
  blocks(used: number, total: number, windowUsed: number, windowTotal: number): void
}

/** What a frame says about the worker as a whole. May throw a `ProtocolError` on JSON that it cannot use. */
export interface WorkerHandler {
  loading(fraction: number): void
  ready(json: string): void
  loadFailed(json: string): void
}

/** Above any frame of a real step, which is at most a few records per batch row. */
export const maxFrameBytes = 1 << 20

const Kind = {
  token: 1,
  progress: 2,
  done: 3,
  failed: 4,
  scoredToken: 5,
  stopToken: 6,
  refused: 7,
  blocks: 8,
  loading: 16,
  ready: 17,
  loadFailed: 18
} as const

/**
 * Reads the step frames of native/FRAMES.md from a stream of chunks, wherever they are cut. A token record costs no allocation.
 * Without a `worker` handler a record about the worker is an error.
 */
export class FrameReader {
  private readonly requests: RequestHandler
  private readonly worker: WorkerHandler | undefined
  private readonly packets: PacketReader

  constructor(requests: RequestHandler, worker?: WorkerHandler) {
    this.requests = requests
    this.worker = worker
    this.packets = new PacketReader(maxFrameBytes, (view, start, end) => this.frame(view, start, end))
  }

  /** @throws ProtocolError when the stream is not one of frames; the records before the fault have been handed on. */
  push(chunk: Uint8Array): void {
    this.packets.push(chunk)
  }

  private frame(view: DataView, start: number, end: number): void {
    if (end - start < 4) throw new ProtocolError(`a frame of ${end - start} bytes has no record count`)
    const count = view.getUint32(start, true)
    let offset = start + 4
    for (let i = 0; i < count; i++) offset = this.record(view, offset, end)
    if (offset !== end) throw new ProtocolError(`a frame has ${end - offset} bytes after its last record`)
  }

  /** @returns the offset after the record. */
  private record(view: DataView, offset: number, end: number): number {
    need(offset, 8, end)
    const kind = view.getUint8(offset)
    const detail = view.getUint8(offset + 1)
    if (view.getUint16(offset + 2, true) !== 0) throw new ProtocolError(`a record of kind ${kind} has reserved bits set`)
    const id = view.getUint32(offset + 4, true)
    const body = offset + 8
    switch (kind) {
      case Kind.token: {
        need(body, 4, end)
        this.requests.token(id, view.getInt32(body, true))
        return body + 4
      }
      case Kind.scoredToken: {
        need(body, 8 + 8 * detail, end)
        const top = Array.from({ length: detail }, (_, i) => ({
          token: view.getInt32(body + 8 + 8 * i, true),
          logprob: logprob(view, body + 12 + 8 * i)
        }))
        this.requests.token(id, view.getInt32(body, true), { logprob: logprob(view, body + 4), top })
        return body + 8 + 8 * detail
      }
      case Kind.stopToken: {
        need(body, 4, end)
        this.requests.stopToken(id, view.getInt32(body, true))
        return body + 4
      }
      case Kind.progress: {
        need(body, 8, end)
        this.requests.progress(id, view.getUint32(body, true), view.getUint32(body + 4, true))
        return body + 8
      }
      case Kind.done: {
        need(body, 36, end)
        this.requests.done(id, named(doneReasons, detail, "finish reason"), {
          promptTokens: view.getUint32(body, true),
          cachedTokens: view.getUint32(body + 4, true),
          generatedTokens: view.getUint32(body + 8, true),
          queueMs: amount(view, body + 12),
          promptMs: amount(view, body + 20),
          generationMs: amount(view, body + 28)
        })
        return body + 36
      }
      case Kind.failed: {
        const code = named(nativeErrorCodes, detail, "error kind")
        this.requests.failed(id, code, text(view, body, end))
        return afterText(view, body, end)
      }
      case Kind.refused: {
        const code = named(nativeErrorCodes, detail, "error kind")
        const subject = afterText(view, body, end)
        this.requests.failed(id, code, text(view, body, end), text(view, subject, end))
        return afterText(view, subject, end)
      }
      case Kind.blocks: {
        need(body, 16, end)
        this.requests.blocks(
          view.getUint32(body, true),
          view.getUint32(body + 4, true),
          view.getUint32(body + 8, true),
          view.getUint32(body + 12, true)
        )
        return body + 16
      }
      case Kind.loading: {
        need(body, 8, end)
        this.workerHandler(kind).loading(amount(view, body))
        return body + 8
      }
      case Kind.ready: {
        this.workerHandler(kind).ready(text(view, body, end))
        return afterText(view, body, end)
      }
      case Kind.loadFailed: {
        this.workerHandler(kind).loadFailed(text(view, body, end))
        return afterText(view, body, end)
      }
      default:
        throw new ProtocolError(`a record has the unknown kind ${kind}`)
    }
  }

  private workerHandler(kind: number): WorkerHandler {
    if (this.worker === undefined) throw new ProtocolError(`a record of kind ${kind} came from an engine that is no worker`)
    return this.worker
  }
}

const need = (offset: number, bytes: number, end: number): void => {
  if (end - offset < bytes) throw new ProtocolError(`a frame ends inside a record (${bytes} bytes wanted, ${end - offset} left)`)
}

const named = <Name>(names: ReadonlyArray<Name>, index: number, what: string): Name => {
  const name = names[index]
  if (name === undefined) throw new ProtocolError(`a record has the unknown ${what} ${index}`)
  return name
}

const amount = (view: DataView, offset: number): number => {
  const value = view.getFloat64(offset, true)
  if (!(value >= 0 && value < Infinity)) throw new ProtocolError(`a record has ${value} where an amount belongs`)
  return value
}

const logprob = (view: DataView, offset: number): number => {
  const value = view.getFloat32(offset, true)
  if (!(value <= 0 && value > -Infinity)) throw new ProtocolError(`a record has ${value} where a log probability belongs`)
  return value
}

const decoder = new TextDecoder()

const textBytes = (view: DataView, offset: number, end: number): number => {
  need(offset, 4, end)
  const bytes = view.getUint32(offset, true)
  need(offset + 4, padded(bytes), end)
  return bytes
}

const text = (view: DataView, offset: number, end: number): string =>
  decoder.decode(new Uint8Array(view.buffer, view.byteOffset + offset + 4, textBytes(view, offset, end)))

const afterText = (view: DataView, offset: number, end: number): number => offset + 4 + padded(textBytes(view, offset, end))

const padded = (bytes: number): number => Math.ceil(bytes / 4) * 4

const encoder = new TextEncoder()

/** Builds frames record by record; `take` hands out the frame and starts the next one. */
export class FrameWriter implements RequestHandler, WorkerHandler {
  private view = new DataView(new ArrayBuffer(1024))
  private length = headerBytes
  private records = 0

  token(id: number, token: number, logprobs?: EngineLogprobs): void {
    if (logprobs !== undefined) return this.scoredToken(id, token, logprobs)
    const body = this.record(Kind.token, 0, id, 4)
    this.view.setInt32(body, token, true)
  }

  stopToken(id: number, token: number): void {
    const body = this.record(Kind.stopToken, 0, id, 4)
    this.view.setInt32(body, token, true)
  }

  progress(id: number, processed: number, total: number): void {
    const body = this.record(Kind.progress, 0, id, 8)
    this.view.setUint32(body, processed, true)
    this.view.setUint32(body + 4, total, true)
  }

  done(id: number, reason: DoneReason, counts: DoneCounts): void {
    const body = this.record(Kind.done, doneReasons.indexOf(reason), id, 36)
    this.view.setUint32(body, counts.promptTokens, true)
    this.view.setUint32(body + 4, counts.cachedTokens, true)
    this.view.setUint32(body + 8, counts.generatedTokens, true)
    this.view.setFloat64(body + 12, counts.queueMs, true)
    this.view.setFloat64(body + 20, counts.promptMs, true)
    this.view.setFloat64(body + 28, counts.generationMs, true)
  }

  failed(id: number, code: NativeErrorCode, message: string, subject?: string): void {
    const detail = nativeErrorCodes.indexOf(code)
    if (subject === undefined) this.texts(Kind.failed, detail, id, [message])
    else this.texts(Kind.refused, detail, id, [message, subject])
  }

  blocks(used: number, total: number, windowUsed: number, windowTotal: number): void {
    const body = this.record(Kind.blocks, 0, 0, 16)
    for (const [index, count] of [used, total, windowUsed, windowTotal].entries()) this.view.setUint32(body + 4 * index, count, true)
  }

  loading(fraction: number): void {
    const body = this.record(Kind.loading, 0, 0, 8)
    this.view.setFloat64(body, fraction, true)
  }

  ready(json: string): void {
    this.texts(Kind.ready, 0, 0, [json])
  }

  loadFailed(json: string): void {
    this.texts(Kind.loadFailed, 0, 0, [json])
  }

  /** True when the frame has no record yet. */
  get empty(): boolean {
    return this.records === 0
  }

  take(): Uint8Array {
    this.view.setUint32(0, this.length - 4, true)
    this.view.setUint32(4, this.records, true)
    const frame = new Uint8Array(this.view.buffer).slice(0, this.length)
    this.length = headerBytes
    this.records = 0
    return frame
  }

  private scoredToken(id: number, token: number, { logprob, top }: EngineLogprobs): void {
    const body = this.record(Kind.scoredToken, top.length, id, 8 + 8 * top.length)
    this.view.setInt32(body, token, true)
    this.view.setFloat32(body + 4, logprob, true)
    for (const [index, candidate] of top.entries()) {
      this.view.setInt32(body + 8 + 8 * index, candidate.token, true)
      this.view.setFloat32(body + 12 + 8 * index, candidate.logprob, true)
    }
  }

  private texts(kind: number, detail: number, id: number, texts: ReadonlyArray<string>): void {
    const parts = texts.map((text) => encoder.encode(text))
    let at = this.record(kind, detail, id, parts.reduce((total, { length }) => total + 4 + padded(length), 0))
    for (const bytes of parts) {
      this.view.setUint32(at, bytes.length, true)
      const target = new Uint8Array(this.view.buffer, at + 4, padded(bytes.length))
      target.fill(0)
      target.set(bytes)
      at += 4 + target.length
    }
  }

  /** @returns the offset of the record's payload. */
  private record(kind: number, detail: number, id: number, payloadBytes: number): number {
    const start = this.length
    this.length += 8 + payloadBytes
    if (this.length > this.view.byteLength) {
      const grown = new Uint8Array(Math.max(this.length, this.view.byteLength * 2))
      grown.set(new Uint8Array(this.view.buffer, 0, start))
      this.view = new DataView(grown.buffer)
    }
    this.view.setUint32(start, kind | (detail << 8), true)
    this.view.setUint32(start + 4, id, true)
    this.records++
    return start + 8
  }
}

const headerBytes = 8
