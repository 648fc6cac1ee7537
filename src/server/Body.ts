import { Effect, Stream } from "effect"
import { HttpServerRequest } from "effect/http"
import { promisify } from "node:util"
import * as zlib from "node:zlib"
import { maxDepth, objectOf, parse } from "../dialect/WireRequest.ts"
import { InvalidRequest, RequestRefused } from "../domain/Errors.ts"
import { nextTurn } from "../tokenizer/InTurns.ts"
import { JsonError, parseLarge } from "./LargeJson.ts"
import { Limits } from "./Limits.ts"

const utf8 = new TextDecoder("utf-8", { fatal: true })

const decoders = {
  gzip: promisify<zlib.InputType, zlib.ZlibOptions, Buffer>(zlib.gunzip),
  deflate: promisify<zlib.InputType, zlib.ZlibOptions, Buffer>(zlib.inflate),
  br: promisify<zlib.InputType, zlib.BrotliOptions, Buffer>(zlib.brotliDecompress),
  zstd: promisify<zlib.InputType, zlib.ZstdOptions, Buffer>(zlib.zstdDecompress)
}

const isCoding = (name: string): name is keyof typeof decoders => Object.hasOwn(decoders, name)

const tooLarge = (limit: number) =>
  new RequestRefused({ reason: "BodyTooLarge", message: `The request body is larger than ${limit} bytes.` })

const isTooLarge = (error: unknown) => error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE"

const decompress = (bytes: Uint8Array, coding: keyof typeof decoders, limit: number) =>
  Effect.tryPromise({
    try: () => decoders[coding](bytes, { maxOutputLength: limit }),
    catch: (error) =>
      isTooLarge(error)
        ? tooLarge(limit)
        : new InvalidRequest({ message: `The request body is not valid ${coding} data.`, field: null })
  })

/** Room for the bytes of a body as they come, so that no turn of the event loop copies all of a large one. */
class BodyBytes {
  private bytes: Uint8Array
  private length = 0

  constructor(expected: number) {
    this.bytes = new Uint8Array(expected)
  }

  /** False where the bytes are then more than `limit`. */
  push(chunk: Uint8Array, limit: number): boolean {
    const length = this.length + chunk.length
    if (length > limit) return false
    if (length > this.bytes.length) {
      const larger = new Uint8Array(Math.min(limit, Math.max(2 * this.bytes.length, length, 4096)))
      larger.set(this.bytes.subarray(0, this.length))
      this.bytes = larger
    }
    this.bytes.set(chunk, this.length)
    this.length = length
    return true
  }

  received(): Uint8Array {
    return this.bytes.subarray(0, this.length)
  }
}

/** `expected`: what the client says that it sends, at most `limit`. */
const readBytes = (request: HttpServerRequest.HttpServerRequest, expected: number, limit: number) =>
  Effect.suspend(() => {
    const body = new BodyBytes(expected)
    return request.stream.pipe(
      Stream.mapError(() => new InvalidRequest({ message: "The request body could not be read.", field: null })),
      Stream.runForEach((chunk) => body.push(chunk, limit) ? Effect.void : Effect.fail(tooLarge(limit))),
      Effect.map(() => body.received())
    )
  })

/** The bytes of a JSON request body: of the right type, and not too large before or after decompression. */
const jsonBytes = Effect.gen(function*() {
  const request = yield* HttpServerRequest.HttpServerRequest
  const limit = (yield* Limits).bodyBytes
  const type = (request.headers["content-type"] ?? "").split(";", 1)[0]?.trim().toLowerCase()
  if (type !== "application/json") {
    return yield* new RequestRefused({ reason: "WrongMediaType", message: "The request body must be Content-Type: application/json." })
  }
  const coding = (request.headers["content-encoding"] ?? "identity").trim().toLowerCase()
  if (coding !== "identity" && !isCoding(coding)) {
    return yield* new RequestRefused({
      reason: "WrongMediaType",
      message: `The request body's Content-Encoding must be one of ${Object.keys(decoders).join(", ")}.`
    })
  }
  const expected = Number(request.headers["content-length"] ?? 0)
  if (expected > limit) return yield* tooLarge(limit)
  const received = yield* readBytes(request, expected, limit)
  return isCoding(coding) ? yield* decompress(received, coding, limit) : received
})

/** A body above this many bytes is parsed in slices, since other requests' streams wait meanwhile. */
const largeBytes = 256 * 1024

/** Far more than the longest session of an agent has; whoever sends more makes every other request wait. */
const maxValues = 250_000

/** How long a slice may keep the event loop, in milliseconds. */
const sliceMs = 3

const parseInSlices = Effect.fnUntraced(function*(bytes: Uint8Array) {
  const parser = parseLarge(bytes, { depth: maxDepth, values: maxValues })
  const slice = Effect.try({
    try: () => {
      const end = performance.now() + sliceMs
      let step = parser.next()
      while (step.done !== true && performance.now() < end) step = parser.next()
      return step
    },
    catch: (error) =>
      new InvalidRequest({ message: error instanceof JsonError ? error.message : "The request body cannot be parsed.", field: null })
  })
  while (true) {
    yield* nextTurn
    const step = yield* slice
    if (step.done === true) return step.value
  }
})

const largeObject = (bytes: Uint8Array) => Effect.flatMap(parseInSlices(bytes), (body) => Effect.fromResult(objectOf(body)))

/** The object of a JSON text that is as good as a request body. */
export const wireObjectOf = (text: string) =>
  text.length > largeBytes
    // A long text has kept the event loop long enough to get here.
    ? Effect.andThen(nextTurn, Effect.suspend(() => largeObject(Buffer.from(text))))
    : Effect.fromResult(parse(text))

/** The object of a JSON request body. */
export const wireObject = Effect.gen(function*() {
  const bytes = yield* jsonBytes
  if (bytes.length > largeBytes) return yield* largeObject(bytes)
  const text = yield* Effect.try({
    try: () => utf8.decode(bytes),
    catch: () => new InvalidRequest({ message: "The request body is not valid UTF-8.", field: null })
  })
  return yield* Effect.fromResult(parse(text))
})
