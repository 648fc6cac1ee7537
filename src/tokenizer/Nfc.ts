import { classesAt, mark, runOf, widthAt } from "./CharacterClasses.ts"

// ICU puts combining marks in order by insertion: a run of n of them can take n² steps (6 s for 120 000). Unicode's own stream-safe format
// (UAX #15, section 13) ends runs after 30.
const longRun = 256

/** What is below needs no normalization. */
const firstAffected = /[\u0300-\uffff]/

/** NFC in linear time: runs of 256 and more combining marks, which no language has, stay as they are. */
export const nfc = (text: string): string => {
  if (!firstAffected.test(text)) return text
  let result = ""
  let from = 0
  for (let at = 0; at < text.length;) {
    if ((classesAt(text, at) & mark) === 0) {
      at += widthAt(text, at)
      continue
    }
    const end = runOf(text, at, text.length, mark)
    if (end - at >= longRun) {
      result += text.slice(from, at).normalize("NFC") + text.slice(at, end)
      from = end
    }
    at = end
  }
  return result + text.slice(from).normalize("NFC")
}
