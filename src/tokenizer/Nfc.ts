// ICU puts combining marks in order by insertion: a run of n of them can take n² steps (6 s for 120 000). Unicode's own stream-safe format
// (UAX #15, section 13) ends runs after 30.
const longRun = /(\p{M}{256,})/u

/** NFC in linear time: runs of 256 and more combining marks, which no language has, stay as they are. */
export const nfc = (text: string): string =>
  longRun.test(text) ? text.split(longRun).map((part, i) => i % 2 === 1 ? part : part.normalize("NFC")).join("") : text.normalize("NFC")
