import { Effect, Result } from "effect"
import { closeSync, constants, fstatSync, openSync } from "node:fs"
import * as Path from "node:path"
import { ModelError } from "../domain/Errors.ts"
import { GgufCursor, modelError, printable } from "./GgufCursor.ts"
import { GgufFields, requireField } from "./GgufFields.ts"
import { type GgufHeader, type GgufTensor, readHeader } from "./GgufHeader.ts"
import { readVocabulary } from "./GgufVocabulary.ts"
import type { ModelMetadata, Vocabulary } from "./ModelMetadata.ts"
import { readSampling } from "./ModelSampling.ts"

/**
 * Reads the header of a GGUF file (version 2 or 3; a split model by its first part). The file is not trusted: counts and lengths are held
 * against its size first, and every fault is a `ModelError` that names the key or tensor. Tensor data are not read.
 */
export const read = (path: string): Effect.Effect<ModelMetadata, ModelError> =>
  Effect.suspend(() => Effect.fromResult(attempt(() => readSync(path)))).pipe(Effect.withSpan("GgufMetadata.read"))

/** {@link read} of a file whose tokenizer or sampling may be beyond use: each fault that leaves the rest readable stands beside it. */
export const inspect = (path: string): Effect.Effect<InspectedFile, ModelError> =>
  Effect.suspend(() => Effect.fromResult(attempt(() => inspectSync(path)))).pipe(Effect.withSpan("GgufMetadata.inspect"))

export interface InspectedFile extends Omit<ModelMetadata, "vocabulary" | "sampling"> {
  readonly vocabulary: Result.Result<Vocabulary, ModelError>
  readonly sampling: Result.Result<ModelMetadata["sampling"], ModelError>
}

const attempt = <A>(read: () => A): Result.Result<A, ModelError> => {
  try {
    return Result.succeed(read())
  } catch (error) {
    if (error instanceof ModelError) return Result.fail(error)
    throw error
  }
}

interface Part {
  readonly header: GgufHeader
  readonly bytes: number
}

const readSync = (path: string): ModelMetadata => {
  const { sampling, vocabulary, ...file } = inspectSync(path)
  return { ...file, vocabulary: orThrow(vocabulary), sampling: orThrow(sampling) }
}

const orThrow = <A>(result: Result.Result<A, ModelError>): A => {
  if (Result.isFailure(result)) throw result.failure
  return result.success
}

const inspectSync = (path: string): InspectedFile => {
  const first = readPart(path)
  const fields = new GgufFields(first.header.values)
  const architecture = requireField("general.architecture", fields.string("general.architecture"))
  if (!/^[a-z0-9][a-z0-9._-]*$/i.test(architecture)) {
    throw modelError("Invalid", "general.architecture: not the name of an architecture", "general.architecture")
  }
  const vocabulary = attempt(() => readVocabulary(fields))
  const parts = [first, ...otherParts(path, fields)]
  const tensors = parts.flatMap((part) => part.header.tensors)
  checkTensors(fields, tensors, Result.isSuccess(vocabulary) ? vocabulary.success.tokens.length : 0)
  return {
    path,
    id: modelId(path, fields.string("general.name")),
    architecture,
    fileBytes: sum(parts, (part) => part.bytes),
    tensorBytes: sum(tensors, (tensor) => tensor.bytes),
    parameters: sum(tensors, (tensor) => tensor.elements),
    contextLength: contextLength(fields, architecture),
    chatTemplate: fields.string("tokenizer.chat_template"),
    sampling: attempt(() => readSampling(fields)),
    parts: parts.length,
    tensors: tensors.map(({ bytes, elements, name, type }) => ({ name, type, elements, bytes })),
    vocabulary
  }
}

const readPart = (path: string): Part => {
  let fd: number
  try {
    // Opening a FIFO would wait for a writer without O_NONBLOCK.
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    throw modelError("NotFound", `${printable(path)}: cannot be opened (${errorCode(error)})`, undefined)
  }
  try {
    const stat = fstatSync(fd)
    if (!stat.isFile()) throw modelError("NotFound", `${printable(path)}: not a regular file`, undefined)
    return { header: readHeader(new GgufCursor(fd, stat.size)), bytes: stat.size }
  } catch (error) {
    if (error instanceof ModelError) throw error
    throw modelError("Invalid", `${printable(path)}: cannot be read (${errorCode(error)})`, undefined)
  } finally {
    closeSync(fd)
  }
}

const errorCode = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : String(error)

const partName = /^(?<prefix>.*)-(?<number>\d{5})-of-(?<count>\d{5})\.gguf$/

const otherParts = (path: string, first: GgufFields): ReadonlyArray<Part> => {
  const count = first.integer("split.count") ?? 1
  if (count < 1) throw modelError("Invalid", `split.count: ${count} parts`, "split.count")
  if (count === 1) return []
  if ((first.integer("split.no") ?? 0) !== 0) {
    throw modelError("Inconsistent", "split.no: this is not the first part of a split model", "split.no")
  }
  const groups = partName.exec(Path.basename(path))?.groups
  if (groups === undefined || Number(groups["number"]) !== 1 || Number(groups["count"]) !== count) {
    throw modelError(
      "Inconsistent",
      `split.count: a model of ${count} parts needs files named like model-00001-of-${fiveDigits(count)}.gguf`,
      "split.count"
    )
  }
  return Array.from({ length: count - 1 }, (_, index) => {
    const name = `${groups["prefix"]}-${fiveDigits(index + 2)}-of-${fiveDigits(count)}.gguf`
    return readFurtherPart(Path.join(Path.dirname(path), name), name, index + 1)
  })
}

const readFurtherPart = (path: string, name: string, number: number): Part => {
  let part: Part
  try {
    part = readPart(path)
  } catch (error) {
    if (!(error instanceof ModelError)) throw error
    if (error.reason === "NotFound") throw modelError("Inconsistent", `split.count: the part ${printable(name)} is missing`, "split.count")
    throw modelError(error.reason, `${printable(name)}: ${error.message}`, error.subject)
  }
  if (new GgufFields(part.header.values).integer("split.no") === number) return part
  throw modelError("Inconsistent", `split.no: ${printable(name)} is another part than its name says`, "split.no")
}

const fiveDigits = (value: number): string => String(value).padStart(5, "0")

const checkTensors = (fields: GgufFields, tensors: ReadonlyArray<GgufTensor>, tokens: number): void => {
  const names = new Set<string>()
  for (const { dims, name } of tensors) {
    if (names.has(name)) throw modelError("Invalid", `${printable(name)}: the tensor is in two parts`, name)
    names.add(name)
    if (name === "token_embd.weight" && tokens > (dims[1] ?? 1)) {
      throw modelError("Inconsistent", `${name}: ${dims[1] ?? 1} rows for ${tokens} tokens`, name)
    }
  }
  const announced = fields.integer("split.tensors.count")
  if (announced !== undefined && announced !== tensors.length) {
    throw modelError(
      "Inconsistent",
      `split.tensors.count: ${announced} tensors are announced and ${tensors.length} are there`,
      "split.tensors.count"
    )
  }
}

const contextLength = (fields: GgufFields, architecture: string): number => {
  const key = `${architecture}.context_length`
  const length = fields.integer(key)
  // A file without any key of its architecture is for the engine to refuse: it knows which architectures there are.
  if (length === undefined && !fields.hasPrefix(`${architecture}.`)) return 0
  if (requireField(key, length) >= 1) return requireField(key, length)
  throw modelError("Invalid", `${key}: must be at least 1`, key)
}

const modelId = (path: string, name: string | undefined): string =>
  slug(name ?? "") || slug(Path.basename(path).replace(/\.gguf$/i, "")) || "model"

const slug = (text: string): string => text.replace(/[^A-Za-z0-9._-]+/g, "-").slice(0, 128).replace(/^[-.]+|[-.]+$/g, "")

const sum = <A>(values: ReadonlyArray<A>, of: (value: A) => number): number => values.reduce((total, value) => total + of(value), 0)
