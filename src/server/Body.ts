import { Effect } from "effect"
import { HttpServerError, HttpServerRequest } from "effect/http"
import { promisify } from "node:util"
import * as zlib from "node:zlib"
import { InvalidRequest, RequestRefused } from "../domain/Errors.ts"
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

const readBytes = (request: HttpServerRequest.HttpServerRequest, limit: number) =>
  request.arrayBuffer.pipe(
    Effect.mapError((error) =>
      HttpServerError.isHttpServerError(error) && error.reason._tag === "RequestParseError" && error.reason.reason === "BodyTooLarge"
        ? tooLarge(limit)
        : new InvalidRequest({ message: "The request body could not be read.", field: null })
    )
  )

/** The text of a JSON request body: of the right type, not too large before or after decompression, and UTF-8. */
export const jsonText = Effect.gen(function*() {
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
  if (Number(request.headers["content-length"] ?? 0) > limit) return yield* tooLarge(limit)
  const received = new Uint8Array(yield* readBytes(request, limit))
  const bytes = isCoding(coding) ? yield* decompress(received, coding, limit) : received
  return yield* Effect.try({
    try: () => utf8.decode(bytes),
    catch: () => new InvalidRequest({ message: "The request body is not valid UTF-8.", field: null })
  })
})
