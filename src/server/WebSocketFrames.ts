/** The head of an unmasked text message in one frame (RFC 6455 5.2), a character for each byte; `length` of its payload in bytes. */
const head = (length: number): string => {
  if (length < 126) return String.fromCharCode(0x81, length)
  if (length < 0x1_0000) return String.fromCharCode(0x81, 126, length >> 8, length & 0xff)
  return String.fromCharCode(0x81, 127, 0, 0, 0, 0, length >>> 24, length >> 16 & 0xff, length >> 8 & 0xff, length & 0xff)
}

/** Text messages of a server as the bytes that they are sent as: a text of one character for each byte ("latin1"), or a buffer. */
export const textFrames = (messages: ReadonlyArray<string>): string | Buffer => {
  let frames = ""
  for (const message of messages) {
    if (Buffer.byteLength(message) !== message.length) return encoded(messages)
    frames += head(message.length) + message
  }
  return frames
}

const encoded = (messages: ReadonlyArray<string>): Buffer =>
  Buffer.concat(messages.flatMap((message) => {
    const payload = Buffer.from(message)
    return [Buffer.from(head(payload.length), "latin1"), payload]
  }))
