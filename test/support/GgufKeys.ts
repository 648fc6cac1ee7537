/** A value to write: a float32, an int32 or a string. */
export type KeyValue = { readonly f32: number } | { readonly i32: number } | { readonly string: string }

const alignment = 32
const countAt = 16
const keysAt = 24

const u32 = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

const text = (value: string) => {
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(Buffer.byteLength(value)))
  return Buffer.concat([length, Buffer.from(value)])
}

const valueBytes = (value: KeyValue): ReadonlyArray<Buffer> => {
  if ("string" in value) return [u32(8), text(value.string)]
  const bytes = Buffer.alloc(4)
  if ("f32" in value) bytes.writeFloatLE(value.f32)
  else bytes.writeInt32LE(value.i32)
  return ["f32" in value ? u32(6) : u32(5), bytes]
}

/** A GGUF file with further metadata keys, its tensors' data where they were relative to the header's end. */
export const withKeys = (file: Buffer, keys: Readonly<Record<string, KeyValue>>): Buffer => {
  const added = Buffer.concat(Object.entries(keys).flatMap(([key, value]) => [text(key), ...valueBytes(value)]))
  const filler = (length: number) => Buffer.concat([text("test.filler"), u32(8), text("x".repeat(length))])
  const least = filler(0).length
  const padding = filler((alignment - (added.length + least) % alignment) % alignment)
  const start = Buffer.from(file.subarray(0, keysAt))
  start.writeBigUInt64LE(start.readBigUInt64LE(countAt) + BigInt(Object.keys(keys).length + 1), countAt)
  return Buffer.concat([start, added, padding, file.subarray(keysAt)])
}
