// GPT-2's alphabet: bytes that print stand for themselves, the other 68 in order for U+0100 and up.
const printing = (byte: number): boolean => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174

const unitOf: Uint16Array = (() => {
  let next = 0x100
  return Uint16Array.from({ length: 256 }, (_, byte) => printing(byte) ? byte : next++)
})()

const byteOf: ReadonlyMap<number, number> = new Map(Array.from(unitOf, (unit, byte) => [unit, byte]))

const encoder = new TextEncoder()

/** Text as its UTF-8 bytes in the alphabet of byte-level BPE. */
export const toAlphabet = (text: string): string => {
  const bytes = encoder.encode(text)
  if (bytes.length <= 64) return String.fromCharCode(...Array.from(bytes, (byte) => unitOf[byte] ?? 0))
  return Buffer.from(Uint16Array.from(bytes, (byte) => unitOf[byte] ?? 0).buffer).toString("utf16le")
}

/** Inverse of {@link toAlphabet} for any token; one with a character outside the alphabet stands for its own UTF-8. */
export const fromAlphabet = (token: string): Uint8Array => {
  const bytes = new Uint8Array(token.length)
  for (let i = 0; i < token.length; i++) {
    const byte = byteOf.get(token.charCodeAt(i))
    if (byte === undefined) return encoder.encode(token)
    bytes[i] = byte
  }
  return bytes
}
