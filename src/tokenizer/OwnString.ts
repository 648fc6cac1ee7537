// V8 copies substrings below this length; longer ones stay slices that keep the whole text alive.
const slicedFrom = 13

/** An equal string that shares no memory with the text that it may have been cut from. */
export const ownString = (text: string): string => {
  if (text.length < slicedFrom) return text
  const encoding = !/[^\0-\xff]/.test(text) ? "latin1" : "utf16le"
  return Buffer.from(text, encoding).toString(encoding)
}
