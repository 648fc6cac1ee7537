import type { NativeLoadOptions, NativeSubmit } from "./Native.ts"
import { PacketReader, ProtocolError } from "./Packets.ts"

/**
 * What the server tells its worker, over the worker's stdin. Both ends run on one machine, so integers of token arrays are in its byte
 * order; lengths are little-endian.
 *
 * ```
 * command  u32 bytes of everything after this field · u32 kind · body
 * 1 load   UTF-8 JSON of `NativeLoadOptions`
 * 2 submit u32 JSON bytes · u32 stop tokens · u32 grammar bytes · JSON of the other fields of `NativeSubmit`, padded with spaces to 4 ·
 *          i32 stop tokens · grammar, padded with zeros to 4 · i32 prompt tokens
 * 3 cancel u32 request id
 * 4 close
 * ```
 */
export interface CommandHandler {
  load(options: NativeLoadOptions): void
  submit(request: NativeSubmit): void
  cancel(id: number): void
  close(): void
}

const Kind = { load: 1, submit: 2, cancel: 3, close: 4 } as const

/** 16 M prompt tokens: far above any context. */
export const maxCommandBytes = 1 << 26

/** Reads commands from a stream of chunks, wherever they are cut. Field values are not checked: the addon does that. */
export class CommandReader {
  private readonly handler: CommandHandler
  private readonly packets: PacketReader

  constructor(handler: CommandHandler) {
    this.handler = handler
    this.packets = new PacketReader(maxCommandBytes, (view, start, end) => this.command(view, start, end))
  }

  /** @throws ProtocolError when the stream is not one of commands. */
  push(chunk: Uint8Array): void {
    this.packets.push(chunk)
  }

  private command(view: DataView, start: number, end: number): void {
    const bytes = end - start
    const kind = bytes < 4 ? 0 : view.getUint32(start, true)
    const body = start + 4
    if (kind === Kind.load) this.handler.load(json<NativeLoadOptions>(view, body, end))
    else if (kind === Kind.submit && bytes >= 16) this.handler.submit(readSubmit(view, body, end))
    else if (kind === Kind.cancel && bytes === 8) this.handler.cancel(view.getUint32(body, true))
    else if (kind === Kind.close && bytes === 4) this.handler.close()
    else throw new ProtocolError(`a command of kind ${kind} and ${bytes} bytes is unknown`)
  }
}

const readSubmit = (view: DataView, start: number, end: number): NativeSubmit => {
  const header = start + 12
  const stops = header + view.getUint32(start, true)
  const grammar = stops + 4 * view.getUint32(start + 4, true)
  const grammarBytes = view.getUint32(start + 8, true)
  const prompt = grammar + padded(grammarBytes)
  if (prompt > end || (end - prompt) % 4 !== 0) throw new ProtocolError("the parts of a submit command do not fit its length")
  return {
    ...json<Omit<NativeSubmit, "tokens" | "stopTokens" | "grammar">>(view, header, stops),
    stopTokens: int32s(view, stops, grammar),
    ...(grammarBytes === 0 ? {} : { grammar: new Uint8Array(view.buffer, view.byteOffset + grammar, grammarBytes).slice() }),
    tokens: int32s(view, prompt, end)
  }
}

const padded = (bytes: number): number => Math.ceil(bytes / 4) * 4

const decoder = new TextDecoder()

const json = <Fields>(view: DataView, start: number, end: number): Fields => {
  const text = decoder.decode(new Uint8Array(view.buffer, view.byteOffset + start, end - start))
  try {
    const value: Fields = JSON.parse(text)
    if (typeof value === "object" && value !== null) return value
  } catch { /* reported below, without the text: it may hold what must not be printed */ }
  throw new ProtocolError("the JSON of a command cannot be read")
}

const int32s = (view: DataView, start: number, end: number): Int32Array => {
  const copy = new Int32Array((end - start) / 4)
  new Uint8Array(copy.buffer).set(new Uint8Array(view.buffer, view.byteOffset + start, end - start))
  return copy
}

const encoder = new TextEncoder()
const none = new Uint8Array()

export const encodeLoad = (options: NativeLoadOptions): Uint8Array => {
  const text = encoder.encode(JSON.stringify(options))
  const [bytes] = command(Kind.load, text.length)
  bytes.set(text, 8)
  return bytes
}

export const encodeSubmit = ({ grammar = none, stopTokens, tokens, ...fields }: NativeSubmit): Uint8Array => {
  const compact = JSON.stringify(fields)
  const header = encoder.encode(compact.padEnd(padded(compact.length)))
  const stops = 20 + header.length
  const grammarAt = stops + stopTokens.byteLength
  const prompt = grammarAt + padded(grammar.length)
  const [bytes, view] = command(Kind.submit, prompt - 8 + tokens.byteLength)
  view.setUint32(8, header.length, true)
  view.setUint32(12, stopTokens.length, true)
  view.setUint32(16, grammar.length, true)
  bytes.set(header, 20)
  bytes.set(bytesOf(stopTokens), stops)
  bytes.set(grammar, grammarAt)
  bytes.set(bytesOf(tokens), prompt)
  return bytes
}

export const encodeCancel = (id: number): Uint8Array => {
  const [bytes, view] = command(Kind.cancel, 4)
  view.setUint32(8, id, true)
  return bytes
}

export const encodeClose = (): Uint8Array => command(Kind.close, 0)[0]

const command = (kind: number, bodyBytes: number): readonly [Uint8Array, DataView] => {
  const bytes = new Uint8Array(8 + bodyBytes)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, 4 + bodyBytes, true)
  view.setUint32(4, kind, true)
  return [bytes, view]
}

const bytesOf = (array: Int32Array): Uint8Array => new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
