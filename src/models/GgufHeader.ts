import { type GgufCursor, modelError, printable } from "./GgufCursor.ts"
import { tensorTypes } from "./TensorTypes.ts"

/** An array whose elements were not kept: only the vocabulary's are. */
export interface SkippedArray {
  readonly _tag: "SkippedArray"
  readonly count: number
}

export type GgufValue = number | boolean | string | ReadonlyArray<string> | Int32Array | Float32Array | SkippedArray

export interface GgufTensor {
  readonly name: string
  /** `dims[0]` is the contiguous dimension. */
  readonly dims: ReadonlyArray<number>
  readonly elements: number
  readonly bytes: number
  /** Name of its storage format. */
  readonly type: string
}

/** Metadata and tensor table of one GGUF file. */
export interface GgufHeader {
  readonly values: ReadonlyMap<string, GgufValue>
  readonly tensors: ReadonlyArray<GgufTensor>
}

const maxKeys = 65_536
const maxKeyBytes = 65_535
const maxTensors = 131_072
const maxTensorNameBytes = 63
const maxStringBytes = 64 * 1024 * 1024
const maxArrayCount = 2 ** 28
const maxAlignment = 2 ** 20

const stringType = 8
const arrayType = 9
const elementBytes: ReadonlyArray<number | undefined> = [1, 1, 2, 2, 4, 4, 4, 1, 8, undefined, 8, 8, 8]

/** Reads a header from the start of a file; throws `ModelError`. */
export const readHeader = (cursor: GgufCursor): GgufHeader => {
  cursor.subject = "magic"
  if (cursor.size < 4) cursor.fail("Truncated", "the file ends too early")
  if (cursor.u32() !== 0x46554747) cursor.fail("Invalid", "not a GGUF file")
  cursor.subject = "version"
  const version = cursor.u32()
  if (version === 0) cursor.fail("Invalid", "0 is not a GGUF version")
  if ((version & 0xffff) === 0) cursor.fail("Unsupported", "the file is big-endian")
  if (version !== 2 && version !== 3) cursor.fail("Unsupported", `GGUF version ${version}; 2 and 3 can be read`)
  const tensorCount = readCount(cursor, "tensor_count", maxTensors)
  const keyCount = readCount(cursor, "metadata_kv_count", maxKeys)
  const values = new Map<string, GgufValue>()
  for (let i = 0; i < keyCount; i++) {
    cursor.subject = undefined
    const key = cursor.string(maxKeyBytes)
    if (key === "") cursor.fail("Invalid", `metadata key ${i} is empty`)
    cursor.subject = key
    if (values.has(key)) cursor.fail("Invalid", "the key is there twice")
    values.set(key, readValue(cursor, key))
  }
  return { values, tensors: readTensors(cursor, tensorCount, readAlignment(cursor, values)) }
}

const readCount = (cursor: GgufCursor, name: string, limit: number): number => {
  cursor.subject = name
  const count = cursor.u64()
  if (count > limit) cursor.fail("Invalid", `${count} is more than any model has`)
  return count
}

const readAlignment = (cursor: GgufCursor, values: ReadonlyMap<string, GgufValue>): number => {
  const alignment = values.get("general.alignment") ?? 32
  if (typeof alignment === "number" && Number.isInteger(Math.log2(alignment)) && alignment >= 1 && alignment <= maxAlignment) {
    return alignment
  }
  cursor.subject = "general.alignment"
  return cursor.fail("Invalid", `not a power of two up to ${maxAlignment}`)
}

const readValue = (cursor: GgufCursor, key: string): GgufValue => {
  const type = cursor.u32()
  return type === arrayType ? readArray(cursor, key) : readScalar(cursor, type)
}

const readScalar = (cursor: GgufCursor, type: number): number | boolean | string => {
  switch (type) {
    case 0:
      return cursor.u8()
    case 1:
      return cursor.i8()
    case 2:
      return cursor.u16()
    case 3:
      return cursor.i16()
    case 4:
      return cursor.u32()
    case 5:
      return cursor.i32()
    case 6:
      return cursor.f32()
    case 7:
      return cursor.u8() !== 0
    case stringType:
      return cursor.string(maxStringBytes)
    case 10:
      return cursor.u64()
    case 11:
      return cursor.i64()
    case 12:
      return cursor.f64()
    default:
      return cursor.fail("Invalid", `unknown value type ${type}`)
  }
}

const readArray = (cursor: GgufCursor, key: string): GgufValue => {
  const type = cursor.u32()
  if (type === arrayType) cursor.fail("Invalid", "an array of arrays")
  const count = cursor.u64()
  if (type !== stringType && elementBytes[type] === undefined) cursor.fail("Invalid", `an array of unknown type ${type}`)
  if (count > maxArrayCount) cursor.fail("Invalid", `an array of ${count} elements`)
  const bytes = count * (elementBytes[type] ?? 8)
  if (bytes > cursor.remaining) {
    cursor.fail("Truncated", `an array of ${count} elements where ${cursor.remaining} bytes are left in the file`)
  }
  switch (key) {
    case "tokenizer.ggml.tokens":
    case "tokenizer.ggml.merges":
      return readStrings(cursor, type, count)
    case "tokenizer.ggml.token_type":
      return readNumbers(cursor, type, new Int32Array(count))
    case "tokenizer.ggml.scores":
      return readNumbers(cursor, type, new Float32Array(count))
  }
  if (type !== stringType) cursor.skip(bytes)
  else for (let i = 0; i < count; i++) cursor.skipString()
  return { _tag: "SkippedArray", count }
}

const readStrings = (cursor: GgufCursor, type: number, count: number): ReadonlyArray<string> => {
  if (type !== stringType) cursor.fail("Invalid", "not an array of strings")
  return cursor.strings(count, maxStringBytes)
}

const readNumbers = <A extends Int32Array | Float32Array>(cursor: GgufCursor, type: number, into: A): A => {
  if (type === stringType || type === 7) cursor.fail("Invalid", "not an array of numbers")
  for (let i = 0; i < into.length; i++) into[i] = Number(readScalar(cursor, type))
  return into
}

const readTensors = (cursor: GgufCursor, count: number, alignment: number): ReadonlyArray<GgufTensor> => {
  const tensors: Array<GgufTensor & { readonly offset: number }> = []
  const names = new Set<string>()
  for (let i = 0; i < count; i++) {
    const tensor = readTensor(cursor, i)
    if (names.has(tensor.name)) cursor.fail("Invalid", "the tensor is there twice")
    if (tensor.offset % alignment !== 0) {
      cursor.fail("Invalid", `the data begin at ${tensor.offset}, which is not a multiple of ${alignment}`)
    }
    names.add(tensor.name)
    tensors.push(tensor)
  }
  const available = cursor.size - Math.ceil(cursor.position / alignment) * alignment
  let end = 0
  for (const tensor of tensors.toSorted((a, b) => a.offset - b.offset)) {
    if (tensor.offset < end) throw modelError("Invalid", `${printable(tensor.name)}: the data overlap another tensor's`, tensor.name)
    end = tensor.offset + tensor.bytes
    if (end > available) throw modelError("Truncated", `${printable(tensor.name)}: the data end behind the end of the file`, tensor.name)
  }
  return tensors
}

const readTensor = (cursor: GgufCursor, index: number): GgufTensor & { readonly offset: number } => {
  cursor.subject = undefined
  const name = cursor.string(maxTensorNameBytes)
  if (name === "") cursor.fail("Invalid", `tensor ${index} has no name`)
  cursor.subject = name
  const rank = cursor.u32()
  if (rank < 1 || rank > 4) cursor.fail("Invalid", `${rank} dimensions; 1 to 4 are possible`)
  const dims: Array<number> = []
  let elements = 1
  for (let i = 0; i < rank; i++) {
    const dim = cursor.u64()
    elements *= dim
    if (dim === 0 || elements > Number.MAX_SAFE_INTEGER) cursor.fail("Invalid", "impossible dimensions")
    dims.push(dim)
  }
  const typeId = cursor.u32()
  const type = tensorTypes.get(typeId) ?? cursor.fail("Invalid", `unknown tensor type ${typeId}`)
  const row = dims[0] ?? 0
  if (row % type.block !== 0) cursor.fail("Invalid", `rows of ${row} values, which ${type.name} cannot store in blocks of ${type.block}`)
  return { name, dims, elements, bytes: elements / type.block * type.bytes, type: type.name, offset: cursor.u64() }
}
