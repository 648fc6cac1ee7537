/** The other side broke the protocol; nothing that follows in the stream can be trusted. */
export class ProtocolError extends Error {
  readonly _tag = "ProtocolError"
}

/** Gets one packet's bytes, `start` to `end` of `view`; they are only valid during the call. */
export type OnPacket = (view: DataView, start: number, end: number) => void

/**
 * Cuts a byte stream into packets, each a u32 length (little-endian, of what follows it) and a body. A packet that lies whole in one
 * chunk is handed on in place; one that was split is put together in a buffer first.
 */
export class PacketReader {
  private readonly maxBytes: number
  private readonly onPacket: OnPacket
  private partial = new DataView(new ArrayBuffer(initialBytes))
  private filled = 0
  private broken: ProtocolError | undefined

  constructor(maxBytes: number, onPacket: OnPacket) {
    this.maxBytes = maxBytes
    this.onPacket = onPacket
  }

  /** @throws ProtocolError on a packet above the size limit, and whatever `onPacket` throws; from then on for every call. */
  push(chunk: Uint8Array): void {
    if (this.broken !== undefined) throw this.broken
    try {
      this.read(chunk)
    } catch (error) {
      this.broken = error instanceof ProtocolError ? error : new ProtocolError("the reader failed", { cause: error })
      throw this.broken
    }
  }

  private read(chunk: Uint8Array): void {
    let offset = 0
    while (this.filled > 0 && offset < chunk.length) {
      const wanted = this.filled < 4 ? 4 : this.packetBytes(this.partial, 0)
      const taken = Math.min(wanted - this.filled, chunk.length - offset)
      this.keep(chunk.subarray(offset, offset + taken), wanted)
      offset += taken
      if (this.filled >= 4 && this.filled === this.packetBytes(this.partial, 0)) {
        this.filled = 0
        this.onPacket(this.partial, 4, this.packetBytes(this.partial, 0))
        if (this.partial.byteLength > keptBytes) this.partial = new DataView(new ArrayBuffer(initialBytes))
      }
    }
    if (offset === chunk.length) return
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.length)
    while (chunk.length - offset >= 4) {
      const end = offset + this.packetBytes(view, offset)
      if (end > chunk.length) break
      this.onPacket(view, offset + 4, end)
      offset = end
    }
    if (offset < chunk.length) this.keep(chunk.subarray(offset), chunk.length - offset)
  }

  /** Bytes of the packet at `offset`, its length field included. */
  private packetBytes(view: DataView, offset: number): number {
    const bytes = view.getUint32(offset, true)
    if (bytes > this.maxBytes) throw new ProtocolError(`a packet of ${bytes} bytes is above the limit of ${this.maxBytes}`)
    return bytes + 4
  }

  private keep(bytes: Uint8Array, wanted: number): void {
    if (wanted > this.partial.byteLength) {
      const grown = new Uint8Array(wanted)
      grown.set(new Uint8Array(this.partial.buffer, 0, this.filled))
      this.partial = new DataView(grown.buffer)
    }
    new Uint8Array(this.partial.buffer).set(bytes, this.filled)
    this.filled += bytes.length
  }
}

const initialBytes = 4096
/** A buffer that one large packet needed is given back when it is above this. */
const keptBytes = 64 * 1024
